package attribute

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResized(t *testing.T) {
	tests := []struct {
		how           string
		values        []float64
		h, w          int
		height, width int
		want          []float64
	}{
		{"nearest", []float64{1, 2}, 1, 2, 2, 5, []float64{1, 1, 1, 2, 2, 1, 1, 1, 2, 2}},
		{"bilinear", []float64{0, 4}, 1, 2, 1, 4, []float64{0, 1, 3, 4}},
		{"bilinear", []float64{0, 4, 8, 12}, 2, 2, 2, 2, []float64{0, 4, 8, 12}},
		{"bilinear", []float64{0, 4, 8, 12}, 4, 1, 2, 1, []float64{2, 10}},
		{"bilinear", []float64{5}, 1, 1, 2, 3, []float64{5, 5, 5, 5, 5, 5}},
	}
	for _, tt := range tests {
		got := resized(tt.values, tt.h, tt.w, tt.height, tt.width, tt.how)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s from %d×%d to %d×%d: %s", tt.how, tt.h, tt.w, tt.height, tt.width, d)
		}
	}
}

// TestOfficialResize holds both ways of enlarging against captum's, which are PyTorch's, and against OpenCV's
// bilinear one.
func TestOfficialResize(t *testing.T) {
	a := read(t, "captum", "interpolate.npz")
	for _, how := range []string{"nearest", "bilinear"} {
		for _, size := range []int{28, 32} {
			checkResized(t, a["a"].Float64s(), a[fmt.Sprintf("%s_%d", how, size)].Float32s(), size, size, how)
		}
	}
	a = read(t, "cam", "scale_cam_image.npz")
	for key, size := range map[string][2]int{"out_32": {32, 32}, "out_50x40": {40, 50}} {
		var scaled []float64
		for k := range 2 {
			scaled = append(scaled, rescaled(a["a"].Float64s()[k*49:(k+1)*49])...)
		}
		checkResized(t, scaled, a[key].Float32s(), size[0], size[1], "bilinear")
	}
}

// checkResized compares two maps of 7×7.
func checkResized(t *testing.T, values []float64, want []float32, height, width int, how string) {
	t.Helper()
	n := height * width
	for k := range 2 {
		got := singles(resized(values[k*49:(k+1)*49], 7, 7, height, width, how))
		near(t, fmt.Sprintf("%s to %d×%d", how, height, width), got, want[k*n:(k+1)*n], 1e-6)
	}
}

// rescaled returns values moved and stretched to [0,1), as the code of Gildenblat et al. does before it
// enlarges a map.
func rescaled(values []float64) []float64 {
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = (v - low) / (1e-7 + high - low)
	}
	return out
}
