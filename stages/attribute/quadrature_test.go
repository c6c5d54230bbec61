package attribute

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestQuadrature(t *testing.T) {
	s := math.Sqrt(0.6)
	tests := []struct {
		rule        string
		at, weights []float64
	}{
		{"gauss-legendre", []float64{(1 - s) / 2, 0.5, (1 + s) / 2}, []float64{5. / 18, 8. / 18, 5. / 18}},
		{"left", []float64{0, 1. / 3, 2. / 3}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"right", []float64{1. / 3, 2. / 3, 1}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"middle", []float64{1. / 6, 0.5, 5. / 6}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"trapezoid", []float64{0, 0.5, 1}, []float64{0.25, 0.5, 0.25}},
		{"captum-trapezoid", []float64{0, 0.5, 1}, []float64{1. / 6, 1. / 3, 1. / 6}},
		{"linspace-mean", []float64{0, 0.5, 1}, []float64{1. / 3, 1. / 3, 1. / 3}},
	}
	close := cmpopts.EquateApprox(0, 1e-15)
	for _, tt := range tests {
		at, weights := quadrature(tt.rule, len(tt.at))
		if d := cmp.Diff(tt.at, at, close); d != "" {
			t.Errorf("%s: samples %s", tt.rule, d)
		}
		if d := cmp.Diff(tt.weights, weights, close); d != "" {
			t.Errorf("%s: weights %s", tt.rule, d)
		}
	}
}

// TestGaussLegendreIsExact checks that n samples integrate powers below 2n, and not the next.
func TestGaussLegendreIsExact(t *testing.T) {
	for _, n := range []int{1, 2, 7, 20, 32, 50, 101} {
		at, weights := quadrature("gauss-legendre", n)
		off := func(power int) float64 {
			sum := 0.0
			for k, a := range at {
				sum += weights[k] * math.Pow(a, float64(power))
			}
			return math.Abs(sum - 1/float64(power+1))
		}
		for power := range 2 * n {
			if d := off(power); !(d <= 1e-14) {
				t.Errorf("%d samples, power %d: off by %g", n, power, d)
			}
		}
		if n <= 7 && off(2*n) < 1e-9 {
			t.Errorf("%d samples integrate power %d, which no rule can", n, 2*n)
		}
	}
}

// TestQuadratureOfOne checks that one sample is allowed where it makes sense.
func TestQuadratureOfOne(t *testing.T) {
	for rule, want := range map[string]float64{"gauss-legendre": 0.5, "left": 0, "right": 1, "middle": 0.5,
		"linspace-mean": 0} {
		at, weights := quadrature(rule, 1)
		if !(math.Abs(at[0]-want) <= 1e-15) || !(math.Abs(weights[0]-1) <= 1e-15) {
			t.Errorf("%s: %v with weight %v", rule, at, weights)
		}
	}
}
