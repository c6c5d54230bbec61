package attribute_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/stagetest"
)

// links are what chains are made of, each of a value and the one before it.
var links = []func(f *onnx.Fragment, v, before string) string{
	func(f *onnx.Fragment, v, _ string) string { return f.Op("Add", []string{v, "half"}) },
	func(f *onnx.Fragment, v, _ string) string { return f.Op("Mul", []string{v, "half"}) },
	func(f *onnx.Fragment, v, _ string) string { return f.Op("Relu", []string{v}) },
	func(f *onnx.Fragment, v, before string) string { return f.Op("Add", []string{v, before}) },
	func(f *onnx.Fragment, v, _ string) string { return f.Op("Add", []string{v, v}) },
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("Mul", []string{v, f.Op("Sigmoid", []string{v})})
	},
	func(f *onnx.Fragment, v, _ string) string { return f.Op("Conv", []string{v, "kernel"}) },
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("Relu", []string{f.Op("Conv", []string{v, "kernel"})})
	},
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("Conv", []string{f.Op("Concat", []string{f.Op("Relu", []string{v}),
			f.Op("Sigmoid", []string{v})}, onnx.Attr{Name: "axis", Value: 1}), "join"})
	},
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("MaxPool", []string{v}, onnx.Attr{Name: "kernel_shape", Value: []int64{1, 1}})
	},
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("LayerNormalization", []string{v, "scale"})
	},
	func(f *onnx.Fragment, v, _ string) string {
		a := f.Op("Transpose", []string{v}, onnx.Attr{Name: "perm", Value: []int64{0, 1, 3, 2}})
		return f.Op("Conv", []string{f.Op("Concat", []string{a, f.Op("Transpose", []string{v},
			onnx.Attr{Name: "perm",
				Value: []int64{0, 1, 3, 2}})}, onnx.Attr{Name: "axis", Value: 1}), "join"})
	},
	func(f *onnx.Fragment, v, _ string) string {
		a := f.Op("Transpose", []string{v}, onnx.Attr{Name: "perm", Value: []int64{0, 1, 3, 2}})
		c := f.Op("Concat", []string{a, f.Op("Neg", []string{a})}, onnx.Attr{Name: "axis", Value: 1})
		return f.Op("Slice", []string{c, "one", "four", "one"})
	},
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("Add", []string{v, f.Op("Relu", []string{"x"})})
	},
	func(f *onnx.Fragment, v, _ string) string {
		return f.Op("Relu", []string{f.Op("BatchNormalization", []string{v, "three", "three", "three",
			"three"})})
	},
	func(f *onnx.Fragment, v, _ string) string {
		a := f.Op("Softmax", []string{f.Op("MatMul", []string{v, v})})
		return f.Op("Add", []string{v, f.Op("MatMul", []string{a, v})})
	},
}

// chained writes a net of n links, the pattern's again and again, between the images and a linear layer.
func chained(t testing.TB, pattern []byte, n int) string {
	g := &onnxpb.GraphProto{Name: "chain"}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}}}
	mix := []float32{1, .1, .2, .3, 1, .1, .2, .3, 1, 1, .1, .2, .3, 1, .1, .2, .3, 1}
	g.Initializer = append(g.Initializer,
		onnx.FloatTensor("half", []float32{0.5}, 1), onnx.FloatTensor("three", []float32{1, 2, 3},
			3), onnx.FloatTensor("scale", []float32{1, 1, 1, 1}, 4),
		onnx.IntTensor("one", []int{1}, 1), onnx.IntTensor("four", []int{4}, 1),
		onnx.FloatTensor("kernel", mix[:9], 3, 3, 1, 1), onnx.FloatTensor("join", mix, 3, 6, 1,
			1), onnx.FloatTensor("weights", make([]float32, 48*2), 48, 2))
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{onnx.Free, 3, 4, 4},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT})
	f := m.Fragment()
	before, v := "x", "x"
	for i := range n {
		before, v = v, links[int(pattern[i%len(pattern)])%len(links)](f, v, before)
	}
	f.OpTo("y", "Gemm", []string{f.Op("Flatten", []string{v}), "weights"})
	m.After(f)
	return modeltest.File(t, m)
}

// FuzzInspectGrowth checks that an inspection, which tries every method, takes time in proportion to a net's
// nodes: of four times as many, at most eight times as long, where what grows with their square would take
// sixteen times.
func FuzzInspectGrowth(f *testing.F) {
	modeltest.Runtime(f)
	all := make([]byte, len(links))
	for i := range all {
		all[i] = byte(i)
	}
	f.Add(all)
	f.Add([]byte{2, 5})
	f.Fuzz(func(t *testing.T, pattern []byte) {
		if len(pattern) == 0 {
			return
		}
		inspect := func(n int) time.Duration {
			file := chained(t, pattern, n)
			begun := spent()
			x, err := registry.Inspect(t.Context(), file, registry.Look{})
			if err != nil {
				t.Fatal(err)
			}
			if x.Problem != "" {
				t.Skip(x.Problem)
			}
			return spent() - begun
		}
		n := 400
		if stagetest.Race() { // which takes long, and times of its own
			n = 40
		}
		few := inspect(n)
		if many := inspect(4 * n); many > 8*few+200*time.Millisecond && !stagetest.Race() {
			t.Errorf("%d links take %v of the processors, and %d take %v", n, few, 4*n, many)
		} else {
			t.Log(few, many)
		}
	})
}

// spent returns for how long this process has run, which on a machine that has much else to do is far less
// than what has passed.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}
