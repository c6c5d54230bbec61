package stat

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

var nan = math.NaN()

func TestRanks(t *testing.T) {
	for _, c := range []struct{ in, want []float64 }{
		{nil, []float64{}},
		{[]float64{7}, []float64{1}},
		{[]float64{3, 1, 2}, []float64{3, 1, 2}},
		{[]float64{1, 1, 0, 1}, []float64{3, 3, 1, 3}},
		{[]float64{math.Inf(1), math.Inf(-1), 0}, []float64{3, 1, 2}},
		{[]float64{0, math.Copysign(0, -1)}, []float64{1.5, 1.5}},
		{[]float64{1, nan}, nil},
	} {
		if got := Ranks(c.in); !slices.Equal(got, c.want) {
			t.Errorf("Ranks(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 100, 1000}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8}, // 1 − 6·Σd²/(n(n²−1)), d² = 1,1,1,1,0
		{[]float64{1, 1, 2}, []float64{1, 2, 3}, math.Sqrt(3) / 2},
		{[]float64{1, 1, 1}, []float64{1, 2, 3}, nan},
		{[]float64{1}, []float64{1}, nan},
		{[]float64{1, 2}, []float64{1, nan}, nan},
		{[]float64{1, 2}, []float64{1, 2, 3}, nan},
	} {
		if got := Spearman(c.x, c.y); math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("Spearman(%v, %v) = %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

// TestGoldenSpearman compares the mean over images of Spearman's correlation between two metrics with
// SciPy's, in the tables of the inter-rater tests.
func TestGoldenSpearman(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/irr_icr.npz")
	for _, name := range []string{"0", "1", "2", "3", "4"} {
		a, b := rows(arrays["order_a"+name]), rows(arrays["order_b"+name])
		var rho, ranked []float64
		for i := range a {
			rho = append(rho, Spearman(a[i], b[i]))
			ranked = append(ranked, Spearman(places(a[i]), places(b[i])))
		}
		for key, x := range map[string][]float64{"icr_rowwise_": rho, "icr_rowwise_rank_": ranked} {
			got, _ := Mean(x)
			if want := arrays[key+name].Float64s()[0]; !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%s%s: mean ρ = %v, want %v", key, name, got, want)
			}
		}
	}
}

// places inverts a permutation.
func places(order []float64) []float64 {
	out := make([]float64, len(order))
	for place, i := range order {
		out[int(i)] = float64(place)
	}
	return out
}

func TestMean(t *testing.T) {
	if mean, n := Mean([]float64{1, nan, 4}); mean != 2.5 || n != 2 {
		t.Errorf("mean of 1 and 4: %v of %d", mean, n)
	}
	if mean, n := Mean([]float64{nan}); !math.IsNaN(mean) || n != 0 {
		t.Errorf("mean of nothing: %v of %d", mean, n)
	}
}
