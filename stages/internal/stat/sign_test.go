package stat

import (
	"math"
	"testing"
)

// TestSignTest compares with scipy.stats.binomtest(k, n).pvalue.
func TestSignTest(t *testing.T) {
	for _, c := range []struct {
		above, below int
		want         float64
	}{{2, 8, 0.109375}, {8, 2, 0.109375}, {0, 6, 0.03125}, {3, 5, 0.7265625}, {4, 4, 1}, {1, 0, 1}} {
		if got := SignTest(c.above, c.below); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d and %d: %v, want %v", c.above, c.below, got, c.want)
		}
	}
	if !math.IsNaN(SignTest(0, 0)) {
		t.Error("a test of nothing has a p-value")
	}
}
