package score

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/stagetest"
)

// at returns the facts of curves with the given shares.
func at(order, shares string) stages.Facts {
	f := facts(order, "")
	delete(f, "step_pixels")
	f["shares"] = shares
	return f
}

// imputed returns the facts of curves of perturb/road.
func imputed(order, shares string) stages.Facts {
	f := at(order, shares)
	f["imputation"] = "noisy-linear"
	return f
}

// TestAUCOverShares checks areas over points that aren't evenly spaced, by hand.
func TestAUCOverShares(t *testing.T) {
	in := func(f stages.Facts) map[string][]stages.Data {
		return map[string][]stages.Data{
			"curves": {stagetest.Items(f, curve(1, 0.5, 0), curve(0.6, 0.6, 0.6))}}
	}
	r := stagetest.Run(t, AUC, nil, in(at("morf", "0,0.1,1")))
	check(t, r, "scores", 1e-12, 0.1*0.75+0.9*0.25, 0.6)
	r = stagetest.Run(t, AUC, nil, in(at("morf", "0.1,0.2,0.5"))) // of a range of 0.4
	check(t, r, "scores", 1e-12, (0.1*0.75+0.3*0.25)/0.4, 0.6)
	r = stagetest.Run(t, AUC, nil, in(at("morf", "0,0.5,1")))
	even := stagetest.Run(t, AUC, nil, in(facts("morf", "1")))
	check(t, r, "scores", 1e-12, scalars(t, stagetest.Items(nil, even.Payloads["scores"]...))...)
	fails(t, AUC, nil, in(at("morf", "0,1")), `"item-0": curves of 3 points don't match their 2 shares`)
	fails(t, AUC, nil, in(at("morf", "0,1,1.5")), `the share "1.5"`)
}

// TestAOPC checks the area over a curve: by hand, its extremes, a curve that doesn't fall, and one without
// values.
func TestAOPC(t *testing.T) {
	in := map[string][]stages.Data{"curves": {stagetest.Items(facts("morf", "1"), curve(0.9, 0.4, 0.3, 0.2),
		curve(1, 0, 0, 0), curve(0, 1, 1, 1), curve(0.5, 0.5, 0.5, 0.5), curve(nan, nan, nan, nan))}}
	r := stagetest.Run(t, AOPC, nil, in)
	check(t, r, "scores", 1e-12, (0+0.5+0.6+0.7)/4, 0.75, -0.75, 0, nan)
	for order, direction := range map[string]stages.Direction{"morf": stages.Higher, "lerf": stages.Lower,
		"deletion": stages.Higher} {
		in["curves"] = []stages.Data{stagetest.Items(facts(order, "1"), curve(1, 0))}
		r := stagetest.Run(t, AOPC, nil, in)
		if m := stages.MeasureOf(r.Facts["scores"]); m.Direction != direction || m.Low != -1 || m.High != 1 {
			t.Errorf("%s: %+v", order, m)
		}
	}
	in["curves"] = []stages.Data{stagetest.Items(facts("insertion", "1"), curve(1, 0))}
	fails(t, AOPC, nil, in, `needs curves that remove pixels, not of "insertion"`)
}

func pair(morf, lerf stages.Facts, m, l []byte) map[string][]stages.Data {
	return map[string][]stages.Data{"morf": {stagetest.Items(morf, m)}, "lerf": {stagetest.Items(lerf, l)}}
}

// TestABPC checks the area between curves: by hand, its extremes, equal curves, and what isn't a pair.
func TestABPC(t *testing.T) {
	morf, lerf := facts("morf", "1"), facts("lerf", "1")
	for _, c := range []struct {
		m, l []byte
		want float64
	}{
		{curve(0.9, 0.4, 0.1), curve(0.9, 0.8, 0.1), 0.4 / 3},
		{curve(0, 0, 0), curve(1, 1, 1), 1},
		{curve(1, 1, 1), curve(0, 0, 0), -1},
		{curve(0.3, 0.2, 0.1), curve(0.3, 0.2, 0.1), 0},
		{curve(nan, nan), curve(1, 1), nan},
	} {
		check(t, stagetest.Run(t, ABPC, nil, pair(morf, lerf, c.m, c.l)), "scores", 1e-12, c.want)
	}
	c := curve(1, 0)
	fails(t, ABPC, nil, pair(lerf, morf, c, c), "needs curves of the order")
	fails(t, ABPC, nil, pair(morf, facts("lerf", "2"), c, c),
		`the fact step_pixels is "1" of morf, and "2" of lerf`)
	fails(t, ABPC, nil, pair(morf, lerf, c, curve(1, 0.5, 0)),
		"the curve of morf has 2 points, that of lerf 3")
}

// TestROAD checks the means after removal: by hand, without the original image, and their extremes.
func TestROAD(t *testing.T) {
	morf, lerf := imputed("morf", "0,0.1,0.5"), imputed("lerf", "0,0.1,0.5")
	p := &ROADParams{Response: "probability"}
	r := stagetest.Run(t, ROAD, p, pair(morf, lerf, curve(1, 0.4, 0.2), curve(1, 0.9, 0.5)))
	check(t, r, "morf", 1e-12, 0.3)
	check(t, r, "lerf", 1e-12, 0.7)
	check(t, r, "combined", 1e-12, 0.2)
	r = stagetest.Run(t, ROAD, nil, pair(morf, lerf, curve(1, 0.4, 0.2), curve(1, 0.9, 0.6))) // of correct
	check(t, r, "morf", 1e-12, 0)
	check(t, r, "lerf", 1e-12, 1)
	check(t, r, "combined", 1e-12, 0.5) // the best
	r = stagetest.Run(t, ROAD, nil, pair(morf, lerf, curve(1, 1, 1), curve(1, 0, 0)))
	check(t, r, "combined", 1e-12, -0.5)
	// Without the original among the points, all count.
	r = stagetest.Run(t, ROAD, p, pair(imputed("morf", "0.1,0.5"), imputed("lerf", "0.1,0.5"),
		curve(0.4, 0.2),
		curve(0.9, 0.5)))
	check(t, r, "morf", 1e-12, 0.3)
	r = stagetest.Run(t, ROAD, p, pair(morf, lerf, curve(nan, nan, nan), curve(1, 1, 1)))
	check(t, r, "combined", 0, nan)
	check(t, r, "lerf", 0, 1)
	fails(t, ROAD, nil, pair(imputed("morf", "0,0"), imputed("lerf", "0,0"), curve(1, 1), curve(1, 1)),
		"the curves remove no pixels")
	kept := imputed("lerf", "0,0.1,0.5")
	kept["variant"] = official
	r = stagetest.Run(t, ROAD, p, pair(morf, kept, curve(1, 0.4, 0.2), curve(1, 0.5, 0.9)))
	for port, want := range map[string]string{"morf": "", "lerf": official, "combined": official} {
		if m := stages.MeasureOf(r.Facts[port]); m.Variant != want {
			t.Errorf("%s of curves of the official variant: %+v", port, m)
		}
	}
	delete(kept, "imputation")
	fails(t, ROAD, p, pair(morf, kept, curve(1, 0.4), curve(1, 0.5)),
		`the input "lerf" needs curves of perturb/road`)
}

// TestOfficialROADCombined computes pytorch-grad-cam's combined score from its scores after removal.
func TestOfficialROADCombined(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "road", "pgc_road.npz"))
	const shares = "0.1,0.2,0.5,0.8,0.9"
	percent := []string{"10", "20", "50", "80", "90"}
	for i := range 4 {
		var m, l []float64
		want := 0.0
		for _, p := range percent {
			m = append(m, a["morf"+p+"_score"].Float64s()[i])
			l = append(l, a["lerf"+p+"_score"].Float64s()[i])
			want += (l[len(l)-1] - m[len(m)-1]) / 2 / float64(len(percent))
		}
		r := stagetest.Run(t, ROAD, &ROADParams{Response: "probability"},
			pair(imputed("morf", shares), imputed("lerf", shares), curve(m...), curve(l...)))
		check(t, r, "combined", 1e-12, want)
	}
}

// TestDelta checks the drop at each point of a curve, and shares that curves don't have.
func TestDelta(t *testing.T) {
	in := map[string][]stages.Data{"curves": {stagetest.Items(facts("morf", "1"), curve(1, 0.8, 0.3, 0),
		curve(0.2, 0.9, 0.1, 0.1), curve(nan, nan, nan, nan))}}
	for _, c := range []struct {
		share float64
		want  []float64
	}{
		{0, []float64{0, 0, nan}}, {1.0 / 3, []float64{0, -1, nan}}, {2.0 / 3, []float64{1, 0, nan}},
		{1, []float64{1, 0, nan}},
	} {
		check(t, stagetest.Run(t, Delta, &DeltaParams{Share: c.share, Response: "top-1"}, in), "scores", 0,
			c.want...)
	}
	r := stagetest.Run(t, Delta, &DeltaParams{Share: 2.0 / 3, Response: "probability"}, in)
	check(t, r, "scores", 1e-12, 0.7, 0.1, nan)
	fails(t, Delta, nil, in, "share is 0.5, and the curves have the shares 0, 0.333333, 0.666667, 1")
	in["curves"] = []stages.Data{stagetest.Items(at("lerf", "0,0.1,0.7"), curve(1, 0.9, 0.2))}
	r = stagetest.Run(t, Delta, &DeltaParams{Share: 0.7, Response: "top-1"}, in)
	check(t, r, "scores", 0, 1)
	if m := stages.MeasureOf(r.Facts["scores"]); m.Direction != stages.Lower {
		t.Errorf("of lerf: %+v", m)
	}
	for shares, part := range map[string]string{"0,0.1,0.7": "curves have the shares 0, 0.1, 0.7",
		"0.1,0.5,0.7": "begin at a share of 0.1"} {
		in["curves"] = []stages.Data{stagetest.Items(at("lerf", shares))} // before any item
		fails(t, Delta, nil, in, part)
	}
}

// TestOfficialAblationScores computes AOPC, ABPC and Δ of the reference's curves.
func TestOfficialAblationScores(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "perturbation_reference", "morf_lerf.npz"))
	payloads := map[string][][]byte{}
	for _, order := range []string{"morf", "lerf"} {
		p := a[order+"_prob"].Float64s() // points × images
		for i := range 6 {
			var c []float64
			for k := range 11 {
				c = append(c, p[k*6+i])
			}
			payloads[order] = append(payloads[order], curve(c...))
		}
	}
	morf := stagetest.Items(facts("morf", ""), payloads["morf"]...)
	lerf := stagetest.Items(facts("lerf", ""), payloads["lerf"]...)
	r := stagetest.Run(t, AOPC, nil, map[string][]stages.Data{"curves": {morf}})
	agrees(t, "aopc", mean(t, r), a["aopc"].Float64s()[0])
	r = stagetest.Run(t, ABPC, nil, map[string][]stages.Data{"morf": {morf}, "lerf": {lerf}})
	agrees(t, "abpc", mean(t, r), a["abpc"].Float64s()[0])
}

func mean(t *testing.T, r stagetest.Result) float64 {
	sum := 0.0
	all := scalars(t, stagetest.Items(nil, r.Payloads["scores"]...))
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

func agrees(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-7) { // probabilities in float32
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestRandomOrder checks that scores of curves whose orders say nothing about the response are those of no
// order: the expected area between curves of two random orders is 0, and that over one is half the fall.
func TestRandomOrder(t *testing.T) {
	const images, pixels = 4000, 20
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() []byte { // of a linear net with the weights 0 to 19, in random order
		weights := r.Perm(pixels)
		c := []float64{1}
		for _, w := range weights {
			c = append(c, c[len(c)-1]-float64(w)/190)
		}
		return curve(c...)
	}
	var m, l [][]byte
	for range images {
		m, l = append(m, draw()), append(l, draw())
	}
	in := map[string][]stages.Data{"morf": {stagetest.Items(facts("morf", "1"), m...)},
		"lerf": {stagetest.Items(facts("lerf", "1"), l...)}}
	if x := mean(t, stagetest.Run(t, ABPC, nil, in)); math.Abs(x) > 0.01 {
		t.Errorf("the area between curves of random orders is %v", x)
	}
	x := mean(t, stagetest.Run(t, AOPC, nil, map[string][]stages.Data{"curves": in["morf"]}))
	if math.Abs(x-0.5) > 0.01 {
		t.Errorf("the area over curves of random orders is %v, not half the fall", x)
	}
}
