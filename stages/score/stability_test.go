package score

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// changed returns the inputs of score/relative-stability: a map, and the map of each draw with its changes.
func changed(a []float64, draws ...[2][]float64) map[string][]stages.Data {
	item := func(v []float64, shape ...int) stages.Data {
		return stagetest.Items(nil, stages.NewTensor(v, shape...).Encode())
	}
	in := map[string][]stages.Data{"maps": {item(a, 1, len(a))}}
	for k, d := range draws {
		at := fmt.Sprintf("d%d", k)
		in["draws"] = append(in["draws"], stagetest.At(item(d[0], 1, len(a)), "draw", at))
		in["changes"] = append(in["changes"], stagetest.At(item(d[1], 4), "draw", at))
	}
	return in
}

// TestRelativeStability checks the maximum and the median over draws by hand, that a draw of another
// prediction counts in none, that the scale of maps changes nothing, and where scores are undefined.
func TestRelativeStability(t *testing.T) {
	a := []float64{2, 4}
	draws := [][2][]float64{ // maps that change by 0.5, 1 and √2 of themselves
		{{3, 4}, {0.25, 1, 0.5, 1}},
		{{2, 8}, {0.25, 1, 2, 1}},
		{{4, 8}, {1, math.Sqrt2, 0, 1}},
		{{200, 4}, {1, 1, 1, 0}},
	}
	r := stagetest.Run(t, RelativeStability, nil, changed(a, draws...))
	check(t, r, "ris", 1e-9, 4)
	check(t, r, "ris_median", 1e-9, 2)
	check(t, r, "ros", 1e-9, 1)
	check(t, r, "ros_median", 1e-9, 1)
	check(t, r, "rrs", 1e-3, math.Sqrt2*1e6)
	check(t, r, "rrs_median", 1e-9, 1)
	check(t, r, "changed", 1e-12, 0.25)
	for k := range draws {
		draws[k][0] = []float64{10 * draws[k][0][0], 10 * draws[k][0][1]}
	}
	scaled := stagetest.Run(t, RelativeStability, nil, changed([]float64{20, 40}, draws...))
	for port, payloads := range r.Payloads {
		if !slices.Equal(payloads[0], scaled.Payloads[port][0]) {
			t.Errorf("%s depends on the maps' scale", port)
		}
	}
	r = stagetest.Run(t, RelativeStability, nil, changed([]float64{0, 4}, [2][]float64{{1, 4}, {1, 1, 1, 1}}))
	check(t, r, "ris", 1e-3, 1e6) // a pixel without relevance counts as ε
	r = stagetest.Run(t, RelativeStability, nil, changed(a, draws[3]))
	check(t, r, "ris", 0, nan)
	check(t, r, "ris_median", 0, nan)
	check(t, r, "changed", 0, 1)
	constant := stagetest.Run(t, RelativeStability, nil, changed(a, [2][]float64{a, {1, 1, 1, 1}}))
	check(t, constant, "ros", 0, 0)
	infinite := stagetest.Run(t, RelativeStability, nil, changed(a, draws[0],
		[2][]float64{{math.Inf(1), 1}, {1, 1, 1, 1}}))
	check(t, infinite, "ris", 0, nan)
	check(t, infinite, "ris_median", 0, nan)
}

// TestOfficialStability compares the objectives with those of Quantus over five draws, and continuity with
// its translations.
func TestOfficialStability(t *testing.T) {
	a := golden.Arrays(t, "testdata/axioms.npz")
	of := func(key string, draw, i int) []float64 {
		v, n := a[key].Float64s(), 0
		if draw < 0 {
			n = len(v) / 2
			return v[i*n : (i+1)*n]
		}
		n = len(v) / 10
		return v[(2*draw+i)*n : (2*draw+i+1)*n]
	}
	relative := func(x, y []float64) float64 { return RelativeStabilityParams{Epsilon: 1e-6}.change(x, y) }
	for i := range 2 {
		var draws [][2][]float64
		for k := range 5 {
			draws = append(draws, [2][]float64{of("aa", k, i), {relative(of("x", -1, i), of("xx", k, i)),
				euclidean(of("h", -1, i), of("hh", k, i)), relative(of("z", -1, i), of("zz", k, i)), 1}})
		}
		r := stagetest.Run(t, RelativeStability, nil, changed(of("a", -1, i), draws...))
		for _, port := range stabilities {
			got, err := stages.ScalarOf(r.Payloads[port][0])
			if want := a[port].Float64s()[i]; err != nil || !(math.Abs(got-want) <= 1e-9*want) {
				t.Errorf("image %d: %s is %v, %v, want %v", i, port, got, err, want)
			}
		}
	}
	const n = 3 * 8 * 8
	weights := a["cw"].Float64s()
	explain := func(image []byte) []byte {
		x, err := stages.DecodeTensor(image)
		if err != nil {
			t.Fatal(err)
		}
		v := x.Float64s()
		for k := range v {
			v[k] *= weights[k]
		}
		return stages.NewTensor(v, 3, 8, 8).Encode()
	}
	for i := range 2 {
		image := stages.NewTensor(a["cx"].Float32s()[i*n:(i+1)*n], 3, 8, 8).Encode()
		in := map[string][]stages.Data{"images": {stagetest.Items(nil, image)},
			"maps": {stagetest.Items(nil, explain(image))}}
		for _, dx := range a["cdx"].Int64s() {
			moved := stagetest.Run(t, perturb.Translate, &perturb.TranslateParams{X: int(dx)},
				map[string][]stages.Data{"images": in["images"]}).Payloads["images"][0]
			at := strconv.Itoa(int(dx))
			in["altered"] = append(in["altered"], stagetest.At(stagetest.Items(nil, moved), "dx", at))
			in["draws"] = append(in["draws"], stagetest.At(stagetest.Items(nil, explain(moved)), "dx", at))
		}
		r := stagetest.Run(t, Continuity, nil, in)
		check(t, r, "scores", 1e-5, a["continuity"].Float64s()[i])
	}
}

// TestContinuity checks the strongest variation by hand, and where it is undefined.
func TestContinuity(t *testing.T) {
	in := func(draws ...[2][]float64) map[string][]stages.Data {
		in := drawn([]float64{3, 4}, []float64{0, 0}, draws...)
		in["altered"] = in["noisy"]
		delete(in, "noisy")
		return in
	}
	near, far := [2][]float64{{3, 4.5}, {0.3, 0.4}}, [2][]float64{{6, 8}, {1, 0}}
	same := [2][]float64{{3, 5}, {0, 0}}
	check(t, stagetest.Run(t, Continuity, nil, in(near, far)), "scores", 1e-12, 7)
	check(t, stagetest.Run(t, Continuity, nil, in(near)), "scores", 1e-6, 1)
	check(t, stagetest.Run(t, Continuity, nil, in(far, same)), "scores", 0, nan)
	check(t, stagetest.Run(t, Continuity, nil, in()), "scores", 0, nan)
	infinite := [2][]float64{{math.Inf(1), 8}, {1, 0}}
	check(t, stagetest.Run(t, Continuity, nil, in(near, infinite)), "scores", 0, nan)
}
