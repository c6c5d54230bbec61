package attribute

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestConstant(t *testing.T) {
	for reduce, want := range map[metric.Reduction]float64{"sum": 3, "abs-sum": 3, "sum-abs": 3, "none": 1} {
		p := Constant.NewParams().(*ConstantParams)
		p.Reduce = reduce
		r := stagetest.Run(t, Constant, p, named("a", "b"))
		for _, b := range r.Payloads["maps"] {
			m, err := stages.DecodeTensor(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range m.Float64s() {
				if v != want {
					t.Fatalf("%s: a value is %v, want %v", reduce, v, want)
				}
			}
		}
	}
	if _, err := stagetest.Try(Constant, nil,
		map[string][]stages.Data{"images": {stagetest.Items(nil, stages.Scalar(1))}}); err == nil ||
		!strings.Contains(err.Error(), `item "item-0": an image has shape`) {
		t.Errorf("a number as an image gives %v", err)
	}
}

// TestRandom: moments of both distributions, and what the noise depends on.
func TestRandom(t *testing.T) {
	const side = 64
	image := func(k uint8) []byte {
		return stages.NewTensor(slices.Repeat([]uint8{k}, 3*side*side), 3, side, side).Encode()
	}
	draw := func(distribution string, reduce metric.Reduction, seed uint64, images ...[]byte) [][]float64 {
		t.Helper()
		p := Random.NewParams().(*RandomParams)
		p.Distribution, p.Reduce = distribution, reduce
		e, err := stagetest.Env(&Random, map[string][]stages.Data{"images": {stagetest.Items(nil,
			images...)}})
		if err != nil {
			t.Fatal(err)
		}
		e.Seed = seed
		if err := Random.Run(t.Context(), p, e); err != nil {
			t.Fatal(err)
		}
		var out [][]float64
		for _, o := range e.Outputs {
			m, err := stages.DecodeTensor(o.Data)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, m.Float64s())
		}
		return out
	}
	for _, c := range []struct {
		distribution   string
		reduce         metric.Reduction
		mean, variance float64
	}{
		{"uniform", "none", 0.5, 1.0 / 12},
		{"uniform", "sum", 1.5, 3.0 / 12},
		{"normal", "none", 0, 1},
		{"normal", "sum", 0, 3},
	} {
		v := draw(c.distribution, c.reduce, 1, image(1))[0]
		n := float64(len(v))
		var sum, squares float64
		for _, x := range v {
			sum += x
			squares += (x - c.mean) * (x - c.mean)
		}
		// Five standard errors of the mean; the variance's is at most √(2/n) of it.
		if d := math.Abs(sum/n - c.mean); !(d <= 5*math.Sqrt(c.variance/n)) {
			t.Errorf("%s, %s: the mean is off by %v", c.distribution, c.reduce, d)
		}
		if d := math.Abs(squares/n/c.variance - 1); !(d <= 5*math.Sqrt(2/n)) {
			t.Errorf("%s, %s: the variance is off by a factor %v", c.distribution, c.reduce, d)
		}
	}
	both := draw("uniform", "sum", 1, image(1), image(2))
	if slices.Equal(both[0], both[1]) {
		t.Error("two images have the same noise")
	}
	if alone := draw("uniform", "sum", 1, image(2)); !slices.Equal(alone[0], both[1]) {
		t.Error("an image's noise depends on its neighbours")
	}
	if other := draw("uniform", "sum", 2, image(2)); slices.Equal(other[0], both[1]) {
		t.Error("another seed gives the same noise")
	}
}

// TestModelFreePorts: methods with and without a model can stand on one axis.
func TestModelFreePorts(t *testing.T) {
	for _, s := range []stages.Stage{Constant, Random, External} {
		for _, p := range inputs() {
			in := s.Input(p.Name)
			if in == nil || in.Type != p.Type {
				t.Errorf("%s has no input %q of type %s", s.Name, p.Name, p.Type.Name)
			}
		}
		for _, p := range s.Inputs {
			if p.Name != "images" && (!p.Optional || p.Else != "") {
				t.Errorf("%s needs the input %q", s.Name, p.Name)
			}
		}
		if k := s.Primary(); s.Inputs[k].Name != "images" {
			t.Errorf("%s takes its items from %s", s.Name, s.Inputs[k].Name)
		}
		known := map[string]bool{}
		for _, f := range stages.Fields(s.NewParams()) {
			known[f.Name] = true
		}
		if got := fmt.Sprint(known["target"], known["layer"], known["output"],
			known["reduce"]); got != "true true true true" {
			t.Errorf("%s knows target, layer, output, reduce: %s", s.Name, got)
		}
	}
}

// TestRandomIsFrozen: other bytes need another version, or stores would mix them.
func TestRandomIsFrozen(t *testing.T) {
	for distribution, want := range map[string]string{"uniform": "d7f8a07226ccbdff",
		"normal": "1067cfd390f9fd55"} {
		p := Random.NewParams().(*RandomParams)
		p.Distribution = distribution
		r := stagetest.Run(t, Random, p, named("a"))
		if got := stages.Sum(r.Payloads["maps"][0]).Short(); got != want || Random.Version != 1 {
			t.Errorf("%s noise of version %d has digest %s, want %s of version 1", distribution,
				Random.Version, got, want)
		}
	}
}
