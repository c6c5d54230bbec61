package metric

import (
	"math"
	"testing"
)

// TestGAE checks the parts of Global Attribution Evaluation on cases computed by hand.
func TestGAE(t *testing.T) {
	third := 1.0 / 3
	for _, tt := range []struct {
		what      string
		got, want float64
	}{
		{"the peak's positive part", Peak([]float64{-2, 1, 4}, 0)[1], 0.25},
		{"the peak itself", Peak([]float64{-2, 1, 4}, 0)[2], 1},
		{"a negative value", Peak([]float64{-2, 1, 4}, 0)[0], 0},
		{"a map without positive values", Peak([]float64{-2, 0}, 0)[0], 0},
		{"a map with NaN", Peak([]float64{math.NaN(), 1}, 0)[1], math.NaN()},
		{"an infinite map", Peak([]float64{math.Inf(1), 1}, 0)[1], math.NaN()},
		{"equal maps", Distance([]float64{1, 2}, []float64{1, 2}, 0), 0},
		{"maps without overlap", Distance([]float64{1, 0}, []float64{0, 3}, 0), 1},
		{"maps that overlap", Distance([]float64{1, 0}, []float64{0.5, 0}, 0), third},
		{"zero maps", Distance([]float64{0}, []float64{0}, 0), math.NaN()},
		{"zero maps, as the code has them", Distance([]float64{0}, []float64{0}, 1e-9), 0},
		{"relevance at the best places", Worth([]float64{0, 2, 0}, []float64{-1, 1, 0.5}, 0), 1},
		{"relevance at the worst", Worth([]float64{7, 0, 0}, []float64{-1, 1, 0.5}, 0), -1},
		{"a constant map", Worth([]float64{1, 1, 1, 1}, []float64{1, 1, 1, -1}, 0), 0.5},
		{"a map without channels", Worth([]float64{1, 3}, []float64{1, -1, 1, 1}, 0), 0.25},
		{"weights without channels", Worth([]float64{1, 3, 0, 0}, []float64{1, -1}, 0), -0.5},
		{"a zero map", Worth([]float64{0, 0}, []float64{1, 1}, 0), math.NaN()},
		{"a zero map, as the code has it", Worth([]float64{0, 0}, []float64{1, 1}, 1e-9), 0},
		// Outputs fall from 4 to 2 and 0 by MoRF, to 4 and 2 by LeRF: differences of 0.5 and 0.5.
		{"a map that follows the output",
			Robustness([]float64{0.5, 0.75}, []float64{0, 0.25}, []float64{2, 0}, []float64{4, 2}, 4, 0), 1},
		{"a map that doesn't change",
			Robustness([]float64{0, 0}, []float64{0, 0}, []float64{2, 0}, []float64{4, 2}, 4, 0), -1},
		{"a map that does the contrary",
			Robustness([]float64{0, 0.25}, []float64{0.5, 0.75}, []float64{2, 0}, []float64{4, 2}, 4, 0), -1},
		{"half as much", // 1 − 2·(0.25+0.25)/(1+0.5)
			Robustness([]float64{0.25, 0.5}, []float64{0, 0.25}, []float64{2, 0}, []float64{4, 2}, 4, 0),
			third},
		{"a map that follows at first only", // 1 − 2·0.5/(1+0.5)
			Robustness([]float64{0.5, 0}, []float64{0, 0}, []float64{2, 2}, []float64{4, 4}, 4, 0), third},
		{"nothing changes",
			Robustness([]float64{0, 0}, []float64{0, 0}, []float64{4, 4}, []float64{4, 4}, 4, 0), math.NaN()},
	} {
		if !(math.Abs(tt.got-tt.want) <= 1e-15) && !(math.IsNaN(tt.got) && math.IsNaN(tt.want)) {
			t.Errorf("%s: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}
