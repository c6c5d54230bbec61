package relevance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TestLargest holds the cotangents of pools against what the definition says: each window's
// goes to its largest element, the first of equals in the order of rows, whether a window
// has many equals, reaches into the padding or holds −∞. Of a window of −∞ alone ONNX Runtime
// makes the least finite number, which none of its elements is. What an image has of NaN is
// its own.
func TestLargest(t *testing.T) {
	for _, tt := range []struct {
		in, kernel, stride, pads []int
		ceil, auto               bool
	}{
		{in: []int{7, 7}, kernel: []int{3, 3}, stride: []int{2, 2}, pads: []int{1, 1, 1, 1}},
		{in: []int{9, 8}, kernel: []int{3, 3}, stride: []int{2, 2}, pads: []int{0, 0, 0, 0}, ceil: true},
		{in: []int{6, 6}, kernel: []int{2, 2}, stride: []int{2, 2}, pads: []int{0, 0, 0, 0}},
		{in: []int{7, 5}, kernel: []int{2, 2}, stride: []int{2, 2}, pads: []int{0, 0, 0, 0}},
		{in: []int{6, 9}, kernel: []int{5, 5}, stride: []int{1, 1}, pads: []int{2, 2, 2, 2}},
		{in: []int{6, 9}, kernel: []int{1, 4}, stride: []int{1, 3}, pads: []int{0, 2, 0, 1}, ceil: true},
		{in: []int{8, 7}, kernel: []int{3, 2}, stride: []int{3, 1}, pads: []int{2, 0, 1, 1}},
		{in: []int{8, 7}, kernel: []int{1, 2}, stride: []int{2, 3}, pads: []int{0, 0, 0, 0}}, // leaves elements out
		{in: []int{8, 9}, kernel: []int{3, 3}, stride: []int{2, 2}, pads: []int{1, 1, 1, 1}, auto: true},
		{in: []int{11}, kernel: []int{3}, stride: []int{2}, pads: []int{1, 1}},
		{in: []int{5, 4, 6}, kernel: []int{3, 2, 3}, stride: []int{2, 2, 1}, pads: []int{1, 0, 1, 1, 0, 1}},
	} {
		for _, channels := range []int{3, 16} { // which ONNX Runtime lays out otherwise
			shape := append([]int{2, channels}, tt.in...)
			ex := Example{Inputs: [][]int{shape}, Attrs: []onnx.Attr{{Name: "kernel_shape", Value: longs(tt.kernel)}, {Name: "strides", Value: longs(tt.stride)}}}
			if tt.auto {
				ex.Attrs = append(ex.Attrs, onnx.Attr{Name: "auto_pad", Value: "SAME_UPPER"})
			} else {
				ex.Attrs = append(ex.Attrs, onnx.Attr{Name: "pads", Value: longs(tt.pads)})
			}
			if tt.ceil {
				ex.Attrs = append(ex.Attrs, onnx.Attr{Name: "ceil_mode", Value: 1})
			}
			t.Run(fmt.Sprint(tt.in, tt.kernel, tt.stride, channels), func(t *testing.T) {
				b, err := prepare(t, opMaxPool, ex, Policy{}, 1)
				if err != nil {
					t.Fatal(err)
				}
				defer b.close()
				r := rand.New(rand.NewPCG(1, 2))
				before := tt.pads[:len(tt.in)]
				if tt.auto { // an element more behind
					before = []int{0, 1}
				}
				for _, with := range []string{"ties", "−∞", "NaN"} {
					if with == "−∞" && tt.kernel[0] < tt.stride[0] {
						continue // places are counted, which up to release 1.26 aren't in the window then
					}
					x := make([]float32, size(shape))
					for i := range x {
						x[i] = float32(r.IntN(4) - 3)
						if with == "−∞" && r.IntN(3) == 0 {
							x[i] = float32(math.Inf(-1))
						}
					}
					if with == "NaN" { // in the second image
						for i := len(x) / 2; i < len(x); i += 5 {
							x[i] = float32(math.NaN())
						}
					}
					u := noise(r, size(b.shapes[0]))
					_, back := b.run(t, [][]float32{x}, [][]float32{u})
					want := toLargest(x, u, shape, b.shapes[0], tt.kernel, tt.stride, before)
					checked := len(want)
					if with == "NaN" {
						checked /= 2
					}
					for i, w := range want[:checked] {
						if math.IsNaN(w) {
							continue
						}
						if d := math.Abs(float64(back[0][i]) - w); !(d <= 1e-5) {
							t.Fatalf("%s: element %d gets %v, not %v", with, i, back[0][i], w)
						}
					}
				}
			})
		}
	}
}

// toLargest returns what elements x get of windows' cotangents u, NaN for those in a window
// of −∞ alone.
func toLargest(x, u []float32, in, out, kernel, stride, before []int) []float64 {
	dx := make([]float64, len(x))
	rank := len(kernel)
	for k := range u {
		at := make([]int, rank) // of the window
		for i, rest := rank-1, k; i >= 0; i-- {
			at[i] = rest % out[2+i]
			rest /= out[2+i]
		}
		plane := k / size(out[2:])
		best := -1
		var window []int
		for j := range size(kernel) {
			place, rest, inside := 0, j, true
			step := 1
			for i := rank - 1; i >= 0; i-- {
				p := at[i]*stride[i] + rest%kernel[i] - before[i]
				rest /= kernel[i]
				inside = inside && p >= 0 && p < in[2+i]
				place += p * step
				step *= in[2+i]
			}
			if !inside {
				continue
			}
			v := plane*size(in[2:]) + place
			window = append(window, v)
			if best < 0 || x[v] > x[best] {
				best = v
			}
		}
		if math.IsInf(float64(x[best]), -1) {
			for _, v := range window {
				dx[v] = math.NaN()
			}
		}
		dx[best] += float64(u[k])
	}
	return dx
}
