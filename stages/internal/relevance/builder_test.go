package relevance

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

func TestBroadcast(t *testing.T) {
	tests := []struct{ x, y, want []int }{
		{nil, nil, []int{}},
		{[]int{2, 3}, nil, []int{2, 3}},
		{[]int{2, 1, 4}, []int{3, 1}, []int{2, 3, 4}},
		{[]int{4}, []int{5, 1}, []int{5, 4}},
		{[]int{0, 1}, []int{1, 3}, []int{0, 3}},
	}
	for _, tt := range tests {
		if got := Broadcast(tt.x, tt.y); !slices.Equal(got, tt.want) {
			t.Errorf("%v and %v: got %v, want %v", tt.x, tt.y, got, tt.want)
		}
		if got := Broadcast(tt.y, tt.x); !slices.Equal(got, tt.want) {
			t.Errorf("%v and %v: got %v, want %v", tt.y, tt.x, got, tt.want)
		}
	}
}

// emitted runs the nodes that emit adds to a graph with input x, and checks the result's shape against the
// Builder's.
func emitted(t *testing.T, shape []int, x []float32,
	emit func(b *Builder, x Value) Value) ([]int, []float32) {
	t.Helper()
	r := library(t)
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: Opset}},
		Graph: &onnxpb.GraphProto{Name: "g"},
	}}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: shape, Known: true})
	g, err := onnx.NewGraph(m, map[string]onnx.Type{"x": {Elem: float, Shape: shape}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(g)
	b.node = "test"
	y := emit(b, "x")
	y = b.Emit("Identity", b.Shape(y), []Value{y})
	b.flush(y)
	m.SetOutputs(onnx.Value{Name: y, Elem: float})
	m.Prune()
	code, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewSession(code, []string{"x"}, []string{y}, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.NewTensor[float32](r, shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	copy(in.Data, x)
	got, err := ort.Fetch[float32](t.Context(), s, []ort.Value{in})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[0].Shape, b.Shape(y)) {
		t.Errorf("the shape is %v, the builder took it for %v", got[0].Shape, b.Shape(y))
	}
	out, err := ort.NewTensor[float32](r, got[0].Shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := s.Run(context.Background(), []ort.Value{in}, []ort.Value{out}); err != nil {
		t.Fatal(err)
	}
	return got[0].Shape, slices.Clone(out.Data)
}

func counting(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i + 1)
	}
	return v
}

func TestBuilder(t *testing.T) {
	tests := []struct {
		name  string
		in    []int
		emit  func(b *Builder, x Value) Value
		shape []int
		want  []float32 // for the input 1, 2, 3, …
	}{
		{"sum of the last", []int{2, 3}, func(b *Builder, x Value) Value { return b.Sum(x, []int{1}, false) },
			[]int{2}, []float32{6, 15}},
		{"sum of the first, kept", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Sum(x, []int{0}, true) }, []int{1, 3},
			[]float32{5, 7, 9}},
		{"sum of two, unsorted", []int{2, 2, 2},
			func(b *Builder, x Value) Value { return b.Sum(x, []int{2, 0}, false) }, []int{2},
			[]float32{14, 22}},
		{"sum of none", []int{3}, func(b *Builder, x Value) Value { return b.Sum(x, nil, false) }, []int{3},
			[]float32{1, 2, 3}},
		{"unbroadcast a row", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Unbroadcast(x, []int{3}) }, []int{3},
			[]float32{5, 7, 9}},
		{"unbroadcast a column", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Unbroadcast(x, []int{2, 1}) }, []int{2, 1},
			[]float32{6, 15}},
		{"unbroadcast to a shape with ones", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Unbroadcast(x, []int{1, 1}) }, []int{1, 1},
			[]float32{21}},
		{"unbroadcast nothing", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Unbroadcast(x, []int{2, 3}) }, []int{2, 3},
			counting(6)},
		{"slice", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Slice(x, []int{0, 1}, []int{2, 3}) }, []int{2, 2},
			[]float32{2, 3, 5, 6}},
		{"slice all", []int{2, 3},
			func(b *Builder, x Value) Value { return b.Slice(x, []int{0, 0}, []int{2, 3}) }, []int{2, 3},
			counting(6)},
		{"reverse", []int{2, 3}, func(b *Builder, x Value) Value { return b.Reverse(x, 1) }, []int{2, 3},
			[]float32{3, 2, 1, 6, 5, 4}},
		{"pad", []int{1, 2}, func(b *Builder, x Value) Value { return b.Pad(x, []int{1, 0}, []int{0, 1}) },
			[]int{2, 3}, []float32{0, 0, 0, 1, 2, 0}},
		{"pad by less", []int{1, 3},
			func(b *Builder, x Value) Value { return b.Pad(x, []int{0, -1}, []int{0, 0}) }, []int{1, 2},
			[]float32{2, 3}},
		{"pad by nothing", []int{1, 3},
			func(b *Builder, x Value) Value { return b.Pad(x, []int{0, 0}, []int{0, 0}) }, []int{1, 3},
			counting(3)},
		{"expand", []int{2, 1}, func(b *Builder, x Value) Value { return b.Expand(x, 2, 2) }, []int{2, 2},
			[]float32{1, 1, 2, 2}},
		{"zeros", []int{2}, func(b *Builder, x Value) Value { return b.Add(x, b.Zeros(3, 1)) }, []int{3, 2},
			[]float32{1, 2, 1, 2, 1, 2}},
		{"concat", []int{1, 2}, func(b *Builder, x Value) Value { return b.Concat(1, x, x) }, []int{1, 4},
			[]float32{1, 2, 1, 2}},
		{"gather", []int{1, 3}, func(b *Builder, x Value) Value { return b.Gather(x, 1, 2, 0) }, []int{1, 2},
			[]float32{3, 1}},
		{"dilate", []int{1, 3}, func(b *Builder, x Value) Value { return b.dilate(x, 1, 3) }, []int{1, 7},
			[]float32{1, 0, 0, 2, 0, 0, 3}},
		{"dilate one", []int{3, 1}, func(b *Builder, x Value) Value { return b.dilate(x, 1, 3) }, []int{3, 1},
			counting(3)},
		{"along", []int{2, 2},
			func(b *Builder, x Value) Value {
				return b.along(x, 0, b.Floats([]float32{1, 0, 1, 0, 1, 1}, 2, 3))
			}, []int{3, 2}, []float32{1, 2, 3, 4, 4, 6}},
		{"greater", []int{3}, func(b *Builder, x Value) Value { return b.Greater(x, b.Scalar(2)) }, []int{3},
			[]float32{0, 0, 1}},
		{"less", []int{3}, func(b *Builder, x Value) Value { return b.Less(x, b.Scalar(2)) }, []int{3},
			[]float32{1, 0, 0}},
		{"between", []int{4},
			func(b *Builder, x Value) Value { return b.Between(x, b.Scalar(1), b.Scalar(4)) }, []int{4},
			[]float32{0, 1, 1, 0}},
		{"transpose", []int{2, 3}, func(b *Builder, x Value) Value { return b.Transpose(x, 1, 0) },
			[]int{3, 2}, []float32{1, 4, 2, 5, 3, 6}},
		{"product", []int{2, 2}, func(b *Builder, x Value) Value { return b.MatMul(x, b.SwapLast(x)) },
			[]int{2, 2}, []float32{5, 11, 11, 25}},
	}
	for _, tt := range tests {
		shape, got := emitted(t, tt.in, counting(size(tt.in)), tt.emit)
		if !slices.Equal(shape, tt.shape) || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v %v, want %v %v", tt.name, shape, got, tt.shape, tt.want)
		}
	}
}

// TestMasksOfNaN checks that a mask is a number even for NaN.
func TestMasksOfNaN(t *testing.T) {
	nan := float32(math.NaN())
	_, got := emitted(t, []int{2}, []float32{nan, 1},
		func(b *Builder, x Value) Value { return b.Greater(x, b.Scalar(0)) })
	if !slices.Equal(got, []float32{0, 1}) {
		t.Errorf("got %v", got)
	}
}

// TestPhases compares the fast and the slow form of a Conv's adjoint, also on numbers whose sums aren't
// exact.
func TestPhases(t *testing.T) {
	w := window{
		in: []int{11, 10}, out: []int{6, 4}, kernel: []int{3, 4}, stride: []int{2, 3},
		dilation: []int{1, 1}, before: []int{1, 2}, after: []int{1, 1},
	}
	if _, ok := w.phased(); !ok {
		t.Fatal("no fast form")
	}
	weights := make([]float32, 5*3*12)
	for i := range weights {
		weights[i] = float32(math.Sin(float64(i)))
	}
	run := func(slow bool) []float32 {
		_, got := emitted(t, []int{2, 5, 6, 4}, counting(2*5*24), func(b *Builder, x Value) Value {
			v := b.Floats(weights, 5, 3, 3, 4)
			if slow {
				return b.convTranspose(x, v, 1, w)
			}
			return b.convAdjoint(x, v, 1, w)
		})
		return got
	}
	fast, slow := run(false), run(true)
	if len(fast) != len(slow) {
		t.Fatalf("%d and %d numbers", len(fast), len(slow))
	}
	for i := range fast {
		if d := math.Abs(float64(fast[i] - slow[i])); !(d <= 1e-3) {
			t.Errorf("element %d: %g, ConvTranspose has %g", i, fast[i], slow[i])
		}
	}
}
