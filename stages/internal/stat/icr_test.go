package stat

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// TestGoldenConsistency compares the official mean over the whole matrix, the mean over images, and the
// orders that both are of.
func TestGoldenConsistency(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/irr_icr.npz")
	for _, set := range irrSets {
		a, b := rows(arrays["order_a"+set]), rows(arrays["order_b"+set])
		want := arrays["icr_official_"+set].Float64s()[0]
		if got := ConsistencyOfficial(a, b); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("icr_official_%s: %v, want %v", set, got, want)
		}
		want = arrays["icr_rowwise_rank_"+set].Float64s()[0]
		scoresA, scoresB := rows(arrays["scores_a"+set]), rows(arrays["scores_b"+set])
		if got, n := Consistency(scoresA, scoresB); !(math.Abs(got-want) <= 1e-12) || n != len(a) {
			t.Errorf("icr_rowwise_rank_%s: %v over %d images, want %v", set, got, n, want)
		}
		for i, s := range scoresA {
			if got := Order(s, true); !slices.Equal(got, a[i]) {
				t.Errorf("order_a%s, image %d: %v, want %v", set, i, got, a[i])
			}
		}
	}
}

func TestOrder(t *testing.T) {
	if got := Order([]float64{.1, .5, .3}, false); !slices.Equal(got, []float64{0, 2, 1}) {
		t.Errorf("lower is better: %v", got)
	}
	if got := Order([]float64{.2, .2, .1}, true); !slices.Equal(got, []float64{1, 0, 2}) {
		t.Errorf("equal scores: %v, want the last first", got)
	}
}

func TestConsistency(t *testing.T) {
	a := [][]float64{{1, 2, 3}, {1, nan, 3}, {2, 2, 2}, {3, 1, 2}}
	b := [][]float64{{4, 5, 6}, {1, 2, 3}, {1, 2, 3}, {1, 3, 2}}
	if icr, n := Consistency(a, b); icr != 0 || n != 2 { // ρ = 1 and −1
		t.Errorf("%v over %d images, want 0 over 2", icr, n)
	}
	if icr := ConsistencyOfficial(a[:1], b[:1]); icr != 1 {
		t.Errorf("%v of one image, want 1", icr)
	}
	if icr := ConsistencyOfficial(nil, nil); !math.IsNaN(icr) {
		t.Errorf("%v of no image, want NaN", icr)
	}
}
