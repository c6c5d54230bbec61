package score

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// locators are the metrics of masks and boxes with the parameters of the tests.
var locators = []struct {
	stage  stages.Stage
	params any
	mean   bool // its random maps and constant map don't have the same threshold
}{
	{RankAccuracy, nil, false},
	{IoU, nil, false},
	{IoU, &IoUParams{LocalisationParams{"positive"}, "quantile", 0.75, 5}, false},
	{IoU, &IoUParams{LocalisationParams{"positive"}, "mean", 0, 5}, true},
	{PointingGame, nil, false},
	{PointingGame, &PointingGameParams{LocalisationParams{"positive"}, 2}, false},
	{EnergyPointing, nil, false},
	{ROCAUC, &ROCAUCParams{RankingParams{"positive"}}, false},
	{AveragePrecision, &AveragePrecisionParams{RankingParams{"positive"}}, false},
	{TopK, &TopKParams{RankingParams{"positive"}, 20, 0}, false},
	{TopK, &TopKParams{RankingParams{"positive"}, 1, 0.1}, false},
	{EffectiveHeatRatio, nil, false},
	{EffectiveHeatRatio, &EffectiveHeatRatioParams{LocalisationParams{"positive"}, 0, 5, "relevance"}, false},
}

// locate scores maps of height×width pixels on the same object, a box given by its edges.
func locate(t *testing.T, s stages.Stage, params any, box [4]int, height, width int,
	maps ...[]float64) (scores, chances []float64) {
	t.Helper()
	mask, edges := make([]uint8, height*width), make([]float32, 4)
	for y := box[1]; y < box[3]; y++ {
		for x := box[0]; x < box[2]; x++ {
			mask[y*width+x] = 1
		}
	}
	for k, x := range box {
		edges[k] = float32(x)
	}
	var m, objects [][]byte
	object := stages.NewTensor(mask, height, width).Encode()
	port := "masks"
	if s.Name == EnergyPointing.Name {
		port, object = "boxes", stages.NewTensor(edges, 1, 4).Encode()
	}
	for _, v := range maps {
		m = append(m, stages.NewTensor(v, height, width).Encode())
		objects = append(objects, object)
	}
	r := stagetest.Run(t, s, params, map[string][]stages.Data{
		"maps": {stagetest.Items(nil, m...)}, port: {stagetest.Items(nil, objects...)}})
	for _, p := range []string{"scores", "chance"} {
		measure := stages.MeasureOf(r.Facts[p])
		for _, x := range scalars(t, stagetest.Items(nil, r.Payloads[p]...)) {
			if x < measure.Low || x > measure.High {
				t.Errorf("%s: %s is %v, outside [%v, %v]", s.Name, p, x, measure.Low, measure.High)
			}
		}
	}
	return scalars(t, stagetest.Items(nil, r.Payloads["scores"]...)),
		scalars(t, stagetest.Items(nil, r.Payloads["chance"]...))
}

// TestLocalisationByHand has one map of 2×4 pixels and an object of its two left columns' upper row, pixels 0
// and 1, scored by hand.
func TestLocalisationByHand(t *testing.T) {
	m := []float64{4, 1, 3, 0, -9, 1, 1, 0} // positive part 10, of which 5 on the object
	for _, c := range []struct {
		stage         stages.Stage
		params        any
		score, chance float64
	}{
		// The two largest are 4 and 3; by magnitude 9 and 4.
		{RankAccuracy, nil, 1. / 2, 2. / 8},
		{RankAccuracy, &RankAccuracyParams{LocalisationParams{"magnitude"}}, 1. / 2, 2. / 8},
		// Union 3. Two random pixels: 15, 12 and 1 of 28 pairs hit 0, 1 and 2 times.
		{IoU, nil, 1. / 3, 12./28*1/3 + 1./28},
		// Five of eight: 4, 3 and the three ones.
		{IoU, &IoUParams{LocalisationParams{"positive"}, "quantile", 0.375, 5}, 2. / 5,
			20./56*2/5 + 30./56*1/6},
		// Three of eight: 4, 3 and one of three ones, on the object once in three: 2/3 or 1/4.
		{IoU, &IoUParams{LocalisationParams{"positive"}, "quantile", 0.625, 5}, 1./3*2/3 + 2./3*1/4,
			6./56*2/3 + 30./56*1/4},
		// 4 and 3 reach 10/8.
		{IoU, &IoUParams{LocalisationParams{"positive"}, "mean", 0, 5}, 1. / 3, 12./28*1/3 + 1./28},
		{PointingGame, nil, 1, 2. / 8},
		{PointingGame, &PointingGameParams{LocalisationParams{"magnitude"}, 0}, 0, 2. / 8},
		// Grown by one pixel: 0, 1, 2 and 4, 5, of which 4 has magnitude 9.
		{PointingGame, &PointingGameParams{LocalisationParams{"magnitude"}, 1}, 1, 5. / 8},
		// 4, 3, 1, 1, 1, 0, 0, -9: of 12 pairs 4 wins 6, 1 wins 3 and ties with 2.
		{ROCAUC, nil, 10. / 12, 1. / 2},
		{ROCAUC, &ROCAUCParams{RankingParams{"magnitude"}}, (5 + 2 + 2./2) / 12, 1. / 2},
		// 4 is found at 1 of 1, 1 at 2 of 5. Of the pixels that reach 4, 3, 1, 0 and −9, 1, 1, 3, 2 and 1 are
		// new.
		{AveragePrecision, nil, 1./2 + 1./2*2/5,
			(1 + (1+1./7)/2 + 3*(1+4./7)/5 + 2*(1+6./7)/7 + (1+7./7)/8) / 8},
		// One of the three ones, on the object once in three.
		{TopK, &TopKParams{RankingParams{"signed"}, 3, 0}, (1 + 1./3) / 3, 2. / 8},
		{TopK, &TopKParams{RankingParams{"magnitude"}, 3, 0.25}, 1. / 2, 2. / 8},
		// By 4, the positive values are 1, ¾ and three times ¼. ¼ is the least and the median: of five pixels
		// that reach it with 2.5 in all, those of the object have 1.25.
		{EffectiveHeatRatio, &EffectiveHeatRatioParams{LocalisationParams{"positive"}, 0.1, 3, "pixels"},
			(1.25/5/2 + 1.25/5 + 1./2) / 2, 2. / 8 * (2.5/5/2 + 2.5/5 + 1./2) / 2},
		{EnergyPointing, nil, 5. / 10, 2. / 8},
		{EnergyPointing, &EnergyPointingParams{LocalisationParams{"magnitude"}}, 5. / 19, 2. / 8},
	} {
		got, chance := locate(t, c.stage, c.params, [4]int{0, 0, 2, 1}, 2, 4, m)
		if math.Abs(got[0]-c.score) > 1e-12 || math.Abs(chance[0]-c.chance) > 1e-12 {
			t.Errorf("%s %+v: %v by chance %v, want %v and %v", c.stage.Name, c.params, got[0], chance[0],
				c.score, c.chance)
		}
	}
}

// TestLocalisationLaws checks for every metric the best, the worst, the constant and random maps, and that
// powers of two change nothing.
func TestLocalisationLaws(t *testing.T) {
	const height, width = 12, 10
	box := [4]int{2, 3, 7, 9} // 30 of 120 pixels
	in, out, constant := make([]float64, 120), make([]float64, 120), make([]float64, 120)
	for i := range in {
		x, y := i%width, i/width
		if x >= box[0] && x < box[2] && y >= box[1] && y < box[3] {
			in[i] = 1
		}
		out[i], constant[i] = 1-in[i], 0.1
	}
	// Far away from the object, as pointing has a tolerance.
	corner := make([]float64, 120)
	corner[119] = 1
	r := rand.New(rand.NewPCG(5, 6))
	noise := make([][]float64, 4000)
	for k := range noise {
		noise[k] = make([]float64, 120)
		for i := range noise[k] {
			noise[k][i] = r.Float64()
		}
	}
	for _, l := range locators {
		t.Run(fmt.Sprintf("%s %+v", l.stage.Name, l.params), func(t *testing.T) {
			scores, chances := locate(t, l.stage, l.params, box, height, width, in, out, corner, constant)
			if scores[0] != 1 {
				t.Errorf("a map equal to the mask scores %v, want 1", scores[0])
			}
			worst := scores[1]
			if l.stage.Name == PointingGame.Name {
				worst = scores[2]
			}
			if l.stage.Name == AveragePrecision.Name {
				worst -= 30. / 120 // the precision where all pixels are reached
			}
			if worst != 0 {
				t.Errorf("a map outside the object scores %v, want 0", worst)
			}
			if math.Abs(scores[3]-chances[3]) > 1e-12 {
				t.Errorf("a constant map scores %v, want %v", scores[3], chances[3])
			}
			got, chance := locate(t, l.stage, l.params, box, height, width, noise...)
			mean, square, expected := 0.0, 0.0, 0.0
			for i, x := range got {
				mean += x / float64(len(got))
				square += x * x / float64(len(got))
				expected += chance[i] / float64(len(got))
			}
			if se := math.Sqrt((square - mean*mean) / float64(len(got))); math.Abs(mean-expected) > 3*se {
				t.Errorf("random maps score %v ± %v, want %v", mean, se, expected)
			}
			for _, exponent := range []int{-60, 3, 60} {
				scaled := make([]float64, 120)
				for i, v := range noise[0] {
					scaled[i] = math.Ldexp(v, exponent)
				}
				if x, _ := locate(t, l.stage, l.params, box, height, width, scaled); x[0] != got[0] {
					t.Errorf("the map times 2^%d scores %v, and without %v", exponent, x[0], got[0])
				}
			}
		})
	}
}

// TestLocalisationUndefined checks that a score without a meaning is NaN, and its chance level too.
func TestLocalisationUndefined(t *testing.T) {
	box := [4]int{0, 0, 1, 1}
	for _, l := range locators {
		scores, chances := locate(t, l.stage, l.params, box, 1, 4,
			[]float64{0, 0, 0, 0}, []float64{-1, -2, 0, 0}, []float64{1, nan, 0, 0},
			[]float64{math.Inf(1), 1, 2, 3})
		for i, x := range scores {
			if !math.IsNaN(x) || !math.IsNaN(chances[i]) {
				t.Errorf("%s, map %d: %v by chance %v, want NaN", l.stage.Name, i, x, chances[i])
			}
		}
		scores, chances = locate(t, l.stage, l.params, [4]int{}, 1, 4, []float64{1, 2, 3, 4})
		if !math.IsNaN(scores[0]) || !math.IsNaN(chances[0]) {
			t.Errorf("%s without an object: %v by chance %v, want NaN", l.stage.Name, scores[0], chances[0])
		}
	}
}

// TestLocalisationInputs checks that masks and boxes of the same object score alike, and that what doesn't
// fit is an error with its reason.
func TestLocalisationInputs(t *testing.T) {
	m := stagetest.Items(nil, stages.NewTensor([]float32{1, 2, 0, 5}, 2, 2).Encode())
	boxes := stagetest.Items(nil, stages.NewTensor([]float32{0, 0, 1, 1, 1, 1, 2, 2}, 2, 4).Encode())
	mask := stagetest.Items(nil, stages.NewTensor([]uint8{1, 0, 0, 1}, 2, 2).Encode())
	for _, s := range []stages.Stage{RankAccuracy, IoU, PointingGame, ROCAUC, AveragePrecision,
		EffectiveHeatRatio} {
		a := stagetest.Run(t, s, nil, map[string][]stages.Data{"maps": {m}, "masks": {mask}})
		b := stagetest.Run(t, s, nil, map[string][]stages.Data{"maps": {m}, "boxes": {boxes}})
		for _, port := range []string{"scores", "chance"} {
			check(t, b, port, 0, scalars(t, stagetest.Items(nil, a.Payloads[port]...))...)
		}
		for wired, part := range map[string]string{"": "wire masks or boxes", "masks boxes": "both wired"} {
			err := s.Check(s.NewParams(), func(p string) bool { return wired != "" && p != "maps" })
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s with %q: error %v, want %q", s.Name, wired, err, part)
			}
		}
		small := stagetest.Items(nil, stages.NewTensor([]uint8{1, 0}, 1, 2).Encode())
		fails(t, s, nil, map[string][]stages.Data{"maps": {m}, "masks": {small}},
			`item "item-0": a mask of u8 [1 2] doesn't match a map of 2×2 pixels`)
	}
	bad := stagetest.Items(nil, stages.NewTensor([]float32{0, 0, float32(nan), 1}, 1, 4).Encode())
	fails(t, EnergyPointing, nil, map[string][]stages.Data{"maps": {m}, "boxes": {bad}},
		"an edge of a box is NaN")
	flat := stagetest.Items(nil, stages.NewTensor([]float32{0, 0, 1}, 3).Encode())
	fails(t, EnergyPointing, nil, map[string][]stages.Data{"maps": {m}, "boxes": {flat}}, "four edges a box")
}

// TestTimesChance checks by hand the two metrics that divide a share by the object's, and that they are
// undefined where the share is.
func TestTimesChance(t *testing.T) {
	of := func(v ...float64) []byte { return stages.NewTensor(v, 2, 4).Encode() }
	mask := stages.NewTensor([]uint8{1, 1, 0, 0, 0, 0, 0, stages.Ignored}, 2, 4).Encode()
	in := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, of(4, 1, 3, 0, -9, 1, 1, 50), of(1, 1, 1, 1, 1, 1, 1, 0),
			of(2, 2, 0, 0, 0, 0, 0, 0), of(0, 0, 0, 0, 0, 0, 0, 0))},
		"masks": {stagetest.Items(nil, mask, mask, mask, mask)},
	}
	r := stagetest.Run(t, WeightedLocalisation, nil, in)
	check(t, r, "scores", 1e-12, 5./10*7/2, 1, 7./2, nan)
	check(t, r, "most", 1e-12, 7./2, 7./2, 7./2, nan)
	r = stagetest.Run(t, TopK, &TopKParams{RankingParams{"signed"}, 2, 0}, in)
	check(t, r, "scores", 1e-12, 1./2, 2./7, 1, nan)
	check(t, r, "influence", 1e-12, 7./4, 1, 7./2, nan)
	for k, x := range map[int]float64{6: 1. / 3 * 7 / 2, 7: nan, 1000: nan} {
		r := stagetest.Run(t, TopK, &TopKParams{RankingParams{"signed"}, k, 0}, in)
		if got := scalars(t, stagetest.Items(nil, r.Payloads["influence"]...))[0]; !equalOrNaN(got, x) {
			t.Errorf("the %d most relevant of seven pixels: %v, want %v", k, got, x)
		}
	}
}

func equalOrNaN(a, b float64) bool { return math.Abs(a-b) <= 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
