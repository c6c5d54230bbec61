package relevance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

var cpu = stages.Device{Class: "cpu", Threads: 1}

// TestFirstLargest compares MaxPool's VJP without indices with that of indices, on windows of any kind,
// full of ties and of −∞. Sums of the cotangents are exact, so that each element must be equal.
func TestFirstLargest(t *testing.T) {
	library(t)
	kinds := map[string]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 43))
		ex, kind := drawPool(r)
		with, err := prepareOn(t, opMaxPool, ex, Policy{}, cpu, Without{})
		if err != nil {
			t.Fatalf("seed %d, %v of %v: %v", seed, ex.Attrs, ex.Inputs, err)
		}
		without, err := prepareOn(t, opMaxPool, ex, Policy{}, cpu, Without{Indices: true})
		if err != nil {
			t.Fatalf("seed %d, %v of %v: %v", seed, ex.Attrs, ex.Inputs, err)
		}
		x, u := drawTies(r, size(ex.Inputs[0])), noise(r, size(with.shapes[0]))
		y, want := with.run(t, [][]float32{x}, [][]float32{u})
		if slices.ContainsFunc(y[0], func(v float32) bool { return v < -100 }) {
			// The largest of a window is −∞ or padding: which of them the CPU takes is an accident, and so
			// may be another image's element.
			continue
		}
		kinds[kind]++
		_, got := without.run(t, [][]float32{x}, [][]float32{u})
		if !slices.Equal(got[0], want[0]) {
			t.Fatalf("seed %d, %v of %v: of x %v and dy %v it is\n%v, not\n%v", seed, ex.Attrs, ex.Inputs, x,
				u, got[0], want[0])
		}
		with.close()
		without.close()
	}
	for _, kind := range []string{"1-D disjoint", "1-D overlapping", "2-D disjoint", "2-D overlapping",
		"3-D disjoint", "3-D overlapping"} {
		if kinds[kind] < 10 {
			t.Errorf("%d pools were %s", kinds[kind], kind)
		}
	}
}

// drawPool returns a MaxPool, and its kind.
func drawPool(r *rand.Rand) (ex Example, kind string) {
	rank := 1 + r.IntN(3)
	in := []int{1 + r.IntN(2), 1 + r.IntN(2)}
	var kernel, stride, dilation, before, after []int64
	ceiling := r.IntN(2)
	for range rank {
		k, s, d := 1+r.Int64N(4), 1+r.Int64N(4), int64(1)
		if r.IntN(3) == 0 {
			d += r.Int64N(3)
		}
		extent := d*(k-1) + 1
		n, b, a := extent+r.Int64N(5), r.Int64N(k), r.Int64N(k)
		if (n+b+a-extent+s-1)/s*s >= n+b {
			ceiling = 0 // a window would begin behind the image: kernels and their shapes disagree on it
		}
		in, before, after = append(in, int(n)), append(before, b), append(after, a)
		kernel, stride, dilation = append(kernel, k), append(stride, s), append(dilation, d)
	}
	auto := []string{"NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}[r.IntN(6)]
	if strings.HasPrefix(auto, "SAME") {
		for i, k := range kernel {
			stride[i] = min(stride[i], k) // or the library finds negative padding
		}
	}
	ex = Example{Inputs: [][]int{in}, Attrs: []onnx.Attr{{Name: "kernel_shape", Value: kernel},
		{Name: "strides", Value: stride}}}
	if auto == "NOTSET" {
		ex.Attrs = append(ex.Attrs, onnx.Attr{Name: "pads", Value: slices.Concat(before, after)},
			onnx.Attr{Name: "ceil_mode", Value: ceiling})
	} else {
		ex.Attrs = append(ex.Attrs, onnx.Attr{Name: "auto_pad", Value: auto})
	}
	if auto == "NOTSET" || auto == "VALID" {
		ex.Attrs = append(ex.Attrs, onnx.Attr{Name: "dilations", Value: dilation})
	}
	kind = "disjoint"
	for i, k := range kernel {
		if k > stride[i] {
			kind = "overlapping"
		}
	}
	return ex, fmt.Sprintf("%d-D %s", rank, kind)
}

// drawTies returns a few whole numbers, either 0 and −∞ among them.
func drawTies(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		switch k := r.IntN(8); k {
		case 0:
			v[i] = float32(math.Inf(-1))
		case 1:
			v[i] = float32(math.Copysign(0, -1))
		default:
			v[i] = float32(k/2 - 2)
		}
	}
	return v
}

// TestNaNStaysInItsWindows: what no window with NaN has gets what it would get without NaN, and nothing
// becomes infinite.
func TestNaNStaysInItsWindows(t *testing.T) {
	library(t)
	ex := Example{Inputs: [][]int{{1, 1, 7, 7}}, Attrs: []onnx.Attr{
		{Name: "kernel_shape", Value: []int64{3, 3}}, {Name: "strides", Value: []int64{2, 2}}}}
	b, err := prepareOn(t, opMaxPool, ex, Policy{}, cpu, Without{Indices: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	x := drawTies(rand.New(rand.NewPCG(1, 1)), 49)
	u := make([]float32, 9)
	for i := range u {
		u[i] = float32(1 + i)
	}
	_, want := b.run(t, [][]float32{x}, [][]float32{u})
	x[0] = float32(math.NaN()) // of the first window alone
	_, got := b.run(t, [][]float32{x}, [][]float32{u})
	for i, v := range got[0] {
		row, column := i/7, i%7
		if (row > 2 || column > 2) && v != want[0][i] || !(v >= 0 && v <= want[0][i]+1) {
			t.Errorf("element %d gets %v, not %v", i, v, want[0][i])
		}
	}
}
