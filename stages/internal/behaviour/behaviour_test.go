package behaviour_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/behaviour"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// net returns the net with these parameters.
func net(t *testing.T, kind string, grid, patch, seed int) *behaviour.Net {
	t.Helper()
	n, err := behaviour.New(behaviour.Params{Kind: kind, Grid: grid, Patch: patch, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// apart returns the logit of a class less that of the other.
func apart(n *behaviour.Net, cells []float64, class int) float64 {
	z := n.Logits(cells)
	return z[class] - z[1-class]
}

// TestShapley compares the true attribution with the definition of the Shapley value, by all subsets of all
// cells of the whole net: 2^16 at a grid of 4.
func TestShapley(t *testing.T) {
	for _, kind := range behaviour.Kinds() {
		for _, grid := range []int{2, 4} {
			n := net(t, kind, grid, 1, 3)
			for index := range 2 {
				cells, class := n.Draw(1, index)
				want := enumerated(n, cells, class)
				for i, got := range n.Shapley(cells, class) {
					if math.Abs(got-want[i]) > 1e-12 {
						t.Errorf("%s, grid %d, image %d: cell %d has %v, want %v", kind, grid, index, i, got,
							want[i])
					}
				}
			}
		}
	}
}

// enumerated returns the Shapley values of all cells by their definition.
func enumerated(n *behaviour.Net, cells []float64, class int) []float64 {
	m := len(cells)
	values := make([]float64, 1<<m)
	for set := range values {
		x := slices.Clone(n.Reference())
		for i := range x {
			if set>>i&1 == 1 {
				x[i] = cells[i]
			}
		}
		values[set] = apart(n, x, class)
	}
	weights := make([]float64, m) // by the size of the set that a cell joins: 1/(m·C(m−1, size))
	weights[0] = 1 / float64(m)
	for size := 1; size < m; size++ {
		weights[size] = weights[size-1] * float64(size) / float64(m-size)
	}
	out := make([]float64, m)
	for set, v := range values {
		for i := range out {
			if set>>i&1 == 0 {
				out[i] += weights[bits.OnesCount(uint(set))] * (values[set|1<<i] - v)
			}
		}
	}
	return out
}

// TestTruthByHand has the attributions of gadgets that can be told by heart, of weight 1, in the kinds whose
// cells interact.
func TestTruthByHand(t *testing.T) {
	for _, tc := range []struct {
		kind              string
		cells             []float64
		shapley, intended []float64 // of the weight; NaN: of another
	}{
		{"and", []float64{1, 1}, []float64{0.5, 0.5}, []float64{0.5, 0.5}},
		{"and", []float64{1, -1}, []float64{0, -1}, []float64{0, -1}},
		{"and", []float64{-1, -1}, []float64{-0.5, -0.5}, []float64{-0.5, -0.5}},
		{"or", []float64{1, 1}, []float64{0.5, 0.5}, []float64{0.5, 0.5}},
		{"or", []float64{1, -1}, []float64{1, 0}, []float64{1, 0}},
		{"or", []float64{-1, -1}, []float64{-0.5, -0.5}, []float64{-0.5, -0.5}},
		{"xor", []float64{1, 1}, []float64{-0.5, -0.5}, []float64{-0.5, -0.5}},
		{"xor", []float64{1, -1}, []float64{0.5, 0.5}, []float64{0.5, 0.5}},
		{"not", []float64{1, -1}, []float64{-1, nan}, []float64{-1, nan}},
		{"continuous", []float64{0.5, -1}, []float64{0.5, nan}, []float64{0.5, nan}},
		{"shattered", []float64{3.0 / 16, -1}, []float64{0.375, nan}, []float64{0.375, nan}},
		{"shattered", []float64{-1.0 / 16, -1}, []float64{-0.25, nan}, []float64{-0.25, nan}},
		{"conflicting", []float64{0.5, 0}, []float64{0.5, 0}, []float64{0.5, 0}},
		{"conflicting", []float64{0.5, 1}, []float64{0.25, -0.25}, []float64{0.5, -0.5}},
		{"interaction", []float64{0.5, 0}, []float64{0.5, 0}, []float64{0.5, 0}},
	} {
		n := net(t, tc.kind, 2, 1, 5)
		// The first gadget has an influence; its weight is what it makes of the first cells that tell it.
		one := map[string][]float64{"not": {-1}, "shattered": {0.25}, "or": {1, 1}, "xor": {1, -1},
			"and": {1, 1}}[tc.kind]
		if one == nil {
			one = []float64{1}
		}
		weight := n.Shapley(padded(one), 0)
		w := weight[0] + weight[1]
		if len(one) == 1 {
			w = weight[0]
		}
		if tc.kind == "shattered" {
			w *= 4
		}
		for name, pair := range map[string][2][]float64{
			"Shapley":  {n.Shapley(padded(tc.cells), 0), tc.shapley},
			"intended": {n.Intended(padded(tc.cells), 0), tc.intended},
		} {
			for i, want := range pair[1] {
				if got := pair[0][i]; !math.IsNaN(want) && math.Abs(got-w*want) > 1e-12 {
					t.Errorf("%s of %v, %s: cell %d has %v, want %v", tc.kind, tc.cells, name, i, got, w*want)
				}
			}
		}
	}
}

var nan = math.NaN()

// padded returns the cells of a grid of 2 that begin with these; the others say nothing in the kinds above.
func padded(cells []float64) []float64 {
	return append(slices.Clone(cells), make([]float64, 4-len(cells))...)
}

// TestTruthIsComplete checks that both truths add up to the difference between an image and the reference.
func TestTruthIsComplete(t *testing.T) {
	for _, kind := range behaviour.Kinds() {
		n := net(t, kind, 8, 1, 4)
		for index := range 20 {
			cells, class := n.Draw(2, index)
			want := apart(n, cells, class) - apart(n, n.Reference(), class)
			for name, truth := range map[string][]float64{"Shapley": n.Shapley(cells, class),
				"intended": n.Intended(cells, class)} {
				sum := 0.0
				for _, v := range truth {
					sum += v
				}
				if math.Abs(sum-want) > 1e-12 {
					t.Errorf("%s, image %d: %s adds up to %v, want %v", kind, index, name, sum, want)
				}
			}
		}
	}
}

// TestModel compares the ONNX model with the function that the truth is of: on images, on the reference, and
// on images some of whose cells are those of the reference. The two are equal to the last bit.
func TestModel(t *testing.T) {
	modeltest.Runtime(t)
	for _, kind := range behaviour.Kinds() {
		for _, size := range []struct{ grid, patch int }{{2, 1}, {4, 8}, {8, 4}} {
			n := net(t, kind, size.grid, size.patch, 6)
			m, err := n.Model()
			if err != nil {
				t.Fatal(err)
			}
			images, want := variants(n)
			for i, got := range classified(t, m, images) {
				if z := [behaviour.Classes]float64{float64(got[0]), float64(got[1])}; z != want[i] {
					t.Errorf("%s, %+v, variant %d: the model has %v, want %v", kind, size, i, z, want[i])
				}
			}
		}
	}
}

// classified returns the logits of a model for some images.
func classified(t *testing.T, m modelfile.Model, images []stages.Tensor) (logits [][]float32) {
	t.Helper()
	n, err := modeltest.NetOf(m)
	if err != nil {
		t.Fatal(err)
	}
	f, err := n.Forward(t.Context(), stagetest.NewSlot(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if err := n.Normalise(image, f.Image(0)); err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		logits = append(logits, slices.Clone(f.Row(0)))
	}
	return logits
}

// variants returns images of a net, with its logits.
func variants(n *behaviour.Net) (images []stages.Tensor, logits [][behaviour.Classes]float64) {
	add := func(cells []float64) {
		images = append(images, stages.NewTensor(n.Pixels(cells), 3, n.Side(), n.Side()))
		logits = append(logits, n.Logits(cells))
	}
	add(n.Reference())
	for index := range 6 {
		cells, _ := n.Draw(1, index)
		add(cells)
		for i, v := range n.Reference() {
			if (i*7+index)%3 == 0 {
				cells[i] = v
			}
		}
		add(cells)
	}
	return images, logits
}

// TestDraw checks that images are decisive, that both classes occur, that a draw depends on its number alone,
// and that seeds and draws differ.
func TestDraw(t *testing.T) {
	for _, kind := range behaviour.Kinds() {
		for _, grid := range []int{2, 8} {
			n := net(t, kind, grid, 1, 9)
			classes, seen := [behaviour.Classes]int{}, map[string]bool{}
			for index := range 200 {
				cells, class := n.Draw(3, index)
				if again, _ := n.Draw(3, index); !slices.Equal(cells, again) {
					t.Errorf("%s: draw %d is two images", kind, index)
				}
				z := n.Logits(cells)
				if z[class]-z[1-class] < 0.25 {
					t.Errorf("%s: draw %d has the logits %v", kind, index, z)
				}
				classes[class]++
				seen[fmt.Sprint(cells)] = true
			}
			if min(classes[0], classes[1]) < 20 {
				t.Errorf("%s, grid %d: %v images of the classes", kind, grid, classes)
			}
			if grid > 2 && len(seen) < 200 {
				t.Errorf("%s: %d of 200 images are unique", kind, len(seen))
			}
		}
	}
}

// TestCheck checks that sizes that no net has are refused.
func TestCheck(t *testing.T) {
	for _, p := range []behaviour.Params{{Kind: "nand", Grid: 2, Patch: 1}, {Kind: "and", Grid: 3, Patch: 1},
		{Kind: "and", Grid: 0, Patch: 1}, {Kind: "and", Grid: 2, Patch: 3}, {Kind: "and", Grid: 2}} {
		if _, err := behaviour.New(p); err == nil {
			t.Errorf("%+v has a net", p)
		}
	}
}
