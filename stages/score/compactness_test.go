package score

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestCompactness checks by hand the maps of four pixels that are constant, of one pixel, of two channels and
// without relevance.
func TestCompactness(t *testing.T) {
	of := func(v ...float32) []byte { return stages.NewTensor(v, 2, 2).Encode() }
	in := map[string][]stages.Data{"maps": {stagetest.Items(nil, of(3, 3, 3, 3), of(0, 0, 0, -2),
		stages.NewTensor([]float32{1, 2, 0, 0, 0, -1, 0, -1}, 2, 2, 2).Encode(), // sums 1, 1, 0, −1
		of(0, 0, 0, 0), of(float32(nan), 1, 1, 1), of(1, float32(math.Inf(1)), 0, 0),
		of(1, float32(math.Inf(-1)), 0, 0))}}
	third, four := math.Log(3), math.Log(4)
	for values, want := range map[string]map[string][]float64{
		"magnitude": {
			"gini":                 {0, 0.75, 0.25},
			"entropy":              {four, 0, third},
			"entropy-share":        {1, 0, third / four},
			"histogram-entropy":    {0, four - 0.75*third, 1.5 * math.Ln2}, // ¾ and ¼; ½, ¼ and ¼
			"effective-complexity": {4, 1, 3},
			"effective-share":      {1, 0.25, 0.75},
		},
		"positive": {
			"gini":              {0, nan, 0.5},
			"entropy":           {four, nan, math.Ln2},
			"histogram-entropy": {0, nan, 1.5 * math.Ln2},
		},
	} {
		r := stagetest.Run(t, Compactness, &CompactnessParams{values, 100, 1e-5}, in)
		for port, w := range want {
			check(t, r, port, 1e-12, append(w, nan, nan, nan, nan)...)
		}
	}
	one := map[string][]stages.Data{"maps": {stagetest.Items(nil,
		stages.NewTensor([]float32{2}, 1, 1).Encode())}}
	r := stagetest.Run(t, Compactness, nil, one)
	check(t, r, "entropy", 0, 0)
	check(t, r, "entropy-share", 0, nan) // of ln 1
	flat := stagetest.Items(nil, stages.NewTensor([]float32{1, 2}, 2).Encode())
	fails(t, Compactness, nil, map[string][]stages.Data{"maps": {flat}}, `item "item-0": a map of shape [2]`)
}

// TestCompactnessOfRandomMaps checks that the scores don't see which pixels are relevant: those of random
// maps whose pixels are permuted are the same, and a map of one random pixel is the best there is, by all of
// them.
func TestCompactnessOfRandomMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	const h, w = 9, 11
	var maps [][]byte
	for range 20 {
		v, moved, one := make([]float64, h*w), make([]float64, h*w), make([]float64, h*w)
		for i, k := range r.Perm(h * w) {
			v[i] = r.NormFloat64()
			moved[k] = v[i] * 8
		}
		one[r.IntN(h*w)] = r.NormFloat64()
		for _, v := range [][]float64{v, moved, one} {
			maps = append(maps, stages.NewTensor(v, h, w).Encode())
		}
	}
	res := stagetest.Run(t, Compactness, nil, map[string][]stages.Data{"maps": {
		stagetest.Items(nil, maps...)}})
	for port, best := range map[string]float64{"gini": 1 - 1./(h*w), "entropy": 0, "entropy-share": 0,
		"effective-complexity": 1, "effective-share": 1. / (h * w), "histogram-entropy": nan} {
		x := scalars(t, stagetest.Items(nil, res.Payloads[port]...))
		for i := 0; i < len(x); i += 3 {
			if math.Abs(x[i]-x[i+1]) > 1e-12*max(1, x[i]) {
				t.Errorf("%s: %v, of permuted pixels %v", port, x[i], x[i+1])
			}
			if math.Abs(x[i+2]-best) > 1e-12 {
				t.Errorf("%s of one pixel: %v, want %v", port, x[i+2], best)
			}
			d := stages.MeasureOf(res.Facts[port]).Direction
			switch histogram := port == "histogram-entropy"; { // which is 0 for a constant map
			case histogram != (d == stages.None):
				t.Errorf("%s: %s is better", port, d)
			case !histogram && (x[i+2] > x[i]) != (d == stages.Higher):
				t.Errorf("%s: one pixel has %v and noise %v, and %s is better", port, x[i+2], x[i], d)
			}
		}
	}
}

// TestMSTC checks the results of a map by hand, the undefined ones, and that equal values at the cut are
// reported: an all-but-zero map has every pixel salient.
func TestMSTC(t *testing.T) {
	of := func(v ...float32) []byte { return stages.NewTensor(v, 3, 4).Encode() }
	p := &MSTCParams{"magnitude", 0.7, 20}
	run := func(maps ...[]byte) stagetest.Result {
		return stagetest.Run(t, MSTC, p, map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)}})
	}
	r := run(of(9, -8, 3, 1, 7, 9, 2, 0, 1, 0, 0, 0), of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		of(float32(nan), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))
	check(t, r, "scores", 1e-12, 100*5*4./3, nan, nan)
	check(t, r, "salient", 1e-12, 4./12, nan, nan)
	check(t, r, "components", 0, 1, nan, nan)
	if len(r.Warnings) > 0 {
		t.Errorf("warnings %v", r.Warnings)
	}
	r = run(of(0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0))
	check(t, r, "scores", 1e-12, 100*5/math.Sqrt(6)*12/11)
	check(t, r, "salient", 0, 1)
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "equal compete") {
		t.Errorf("warnings %v", r.Warnings)
	}
}

// TestMSTCRanks checks that one compact part scores above two, two above scattered pixels, and these below a
// constant map, whose hull is the image.
func TestMSTCRanks(t *testing.T) {
	const side = 20
	r := rand.New(rand.NewPCG(3, 2))
	blob := func(y, x int, v []float64) {
		for i := range v {
			dy, dx := float64(i/side-y), float64(i%side-x)
			v[i] = max(v[i], math.Exp(-(dy*dy+dx*dx)/20+1e-9*r.Float64()))
		}
	}
	one, two, noise, flat := make([]float64, side*side), make([]float64, side*side),
		make([]float64, side*side), make([]float64, side*side)
	blob(6, 7, one)
	blob(2, 3, two)
	blob(16, 15, two)
	for i := range noise {
		noise[i], flat[i] = r.Float64(), 1
	}
	var maps [][]byte
	for _, v := range [][]float64{one, two, flat, noise} {
		maps = append(maps, stages.NewTensor(v, side, side).Encode())
	}
	res := stagetest.Run(t, MSTC, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)}})
	x := scalars(t, stagetest.Items(nil, res.Payloads["scores"]...))
	for i := range x[1:] {
		if !(x[i] > x[i+1]) {
			t.Errorf("one part, two, a constant map and noise score %v", x)
		}
	}
}

// TestMonotonicity checks by hand curves that remove the most relevant pixels first, read from their end, and
// which curves are refused.
func TestMonotonicity(t *testing.T) {
	in := func(order string) map[string][]stages.Data {
		return map[string][]stages.Data{"curves": {stagetest.Items(facts(order, "1"),
			curve(1, 0.5, 0.5, 0), curve(0.2, 0.4, 0.1, 0.3), curve(0.9, 0.8, 0.1, 0.2),
			curve(nan, nan, nan, nan),
			curve(0.9, 0.9))}}
	}
	for _, order := range []string{"morf", "deletion"} {
		r := stagetest.Run(t, Monotonicity, nil, in(order))
		check(t, r, "scores", 1e-12, 1, 1./3, 2./3, nan, 1)
		check(t, r, "monotone", 0, 1, 0, 0, nan, 1)
		r = stagetest.Run(t, Monotonicity, &MonotonicityParams{"logit", official}, in(order))
		check(t, r, "scores", 1e-12, 1, 1./2, 1, nan, nan)
		check(t, r, "monotone", 0, 1, 0, 1, nan, nan)
		if v := r.Facts["scores"]["variant"]; v != official {
			t.Errorf("the variant is called %q", v)
		}
	}
	for _, order := range []string{"lerf", "insertion", "random"} {
		fails(t, Monotonicity, nil, in(order), "needs curves that remove the most relevant pixels first")
	}
	short := facts("morf", "")
	short["shares"] = "0,0.1,0.5"
	fails(t, Monotonicity, nil, map[string][]stages.Data{"curves": {stagetest.Items(short, curve(1, 1, 0))}},
		"needs curves to the last pixel")
}

// TestMonotonicityOfLinearNets checks what AIX360 computes: features of a linear net are added to a baseline
// in the order of rising relevance. With positive contributions no step falls, whatever the map.
func TestMonotonicityOfLinearNets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		net, m := make(linear, 2+r.IntN(8)), []float64{}
		for i := range net {
			net[i] = r.NormFloat64() + 0.5
			m = append(m, r.NormFloat64())
		}
		if r.IntN(3) == 0 {
			for i := range net {
				net[i] = math.Abs(net[i])
			}
		}
		_, deletion := net.curves(m)
		res := stagetest.Run(t, Monotonicity, &MonotonicityParams{"probability", paper},
			map[string][]stages.Data{"curves": {stagetest.Items(facts("deletion", "1"), deletion)}})
		total, kept := 0.0, 0.0
		for _, v := range net {
			total += v
		}
		for _, v := range net { // restored from nothing, each adds its share whatever the order
			if v/total >= 0 {
				kept++
			}
		}
		want := kept / float64(len(net))
		check(t, res, "scores", 1e-12, want)
		if math.IsNaN(want) {
			t.Fatal("a net of no pixels")
		}
	}
}

// TestQuantusMonotonicityIsAlwaysTrue checks what Quantus 0.6.0 says of eight random maps of a net whose
// responses fall: True of all, since it replaces its baseline by the baseline and never restores a pixel.
// Ours is AIX360's.
func TestQuantusMonotonicityIsAlwaysTrue(t *testing.T) {
	b, err := os.ReadFile("testdata/monotonicity.json")
	if err != nil {
		t.Fatal(err)
	}
	var peer struct {
		Baselines map[string]struct {
			Quantus, Monotone []bool
			Responses         [][]float64
		}
	}
	if err := json.Unmarshal(b, &peer); err != nil || len(peer.Baselines) != 2 {
		t.Fatal(peer, err)
	}
	for name, p := range peer.Baselines {
		var curves [][]byte
		for _, response := range p.Responses {
			slices.Reverse(response)
			curves = append(curves, curve(response...))
		}
		r := stagetest.Run(t, Monotonicity, &MonotonicityParams{"probability", official},
			map[string][]stages.Data{"curves": {stagetest.Items(facts("morf", "1"), curves...)}})
		scores := scalars(t, stagetest.Items(nil, r.Payloads["scores"]...))
		for i, x := range scalars(t, stagetest.Items(nil, r.Payloads["monotone"]...)) {
			if (x == 1) != p.Monotone[i] || scores[i] > 0.9 || !p.Quantus[i] {
				t.Errorf("baseline %s, map %d: ours %v with %v of the steps, AIX360's %v, Quantus %v", name,
					i, x, scores[i], p.Monotone[i], p.Quantus[i])
			}
		}
	}
}
