package program_test

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// small3 returns a net of three classes, the means of the channels of c, which nodes make of an input of
// 3×8×9, and its file.
func small3(t *testing.T, opset int64, weights []*onnxpb.TensorProto,
	nodes ...*onnxpb.NodeProto) (*program.Net, []byte) {
	t.Helper()
	return small3of(t, -1, opset, weights, nodes...)
}

// small3of returns the same for a fixed batch, or any if that is -1.
func small3of(t *testing.T, batch int, opset int64, weights []*onnxpb.TensorProto,
	nodes ...*onnxpb.NodeProto) (*program.Net, []byte) {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: opset}},
		Graph: &onnxpb.GraphProto{Name: "g", Initializer: weights, Node: append(nodes,
			onnx.NewNode("mean", "GlobalAveragePool", []string{"c"}, []string{"m"}),
			onnx.NewNode("flat", "Flatten", []string{"m"}, []string{"logits"}),
		)},
	}}
	m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{batch, 3, 8, 9},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{batch, 3},
		Known: true})
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return net(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Kind: "logits"}), b
}

// TestNoLength holds that where a vector is 0 its length has the derivative 0, as in PyTorch, and so has what
// divides it by that.
func TestNoLength(t *testing.T) {
	modeltest.Runtime(t)
	for name, nodes := range map[string][]*onnxpb.NodeProto{
		"ReduceL2": {
			onnx.NewNode("length", "ReduceL2", []string{"r"}, []string{"l"},
				onnx.Attr{Name: "axes", Value: []int64{1}}),
			onnx.NewNode("sum", "Add", []string{"l", "k"}, []string{"c"}),
		},
		"LpNormalization": {onnx.NewNode("divide", "LpNormalization", []string{"r"}, []string{"c"},
			onnx.Attr{Name: "axis", Value: 1})},
	} {
		weights := []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2),
			modeltest.Noise("k", 0.2, 1, 3, 7, 8), onnx.FloatTensor("b", []float32{-3, -3, -3}, 3)}
		n, _ := small3(t, 17, weights, append([]*onnxpb.NodeProto{
			onnx.NewNode("conv", "Conv", []string{"input", "w", "b"}, []string{"f"}),
			onnx.NewNode("relu", "Relu", []string{"f"}, []string{"r"}),
		}, nodes...)...)
		_, d := differentiate(t, n, threaded{1, stagetest.NewSlot()},
			lower.Question{Rules: relevance.Derivative()}, 2, 2)
		some := false
		for i, v := range d {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Errorf("%s: derivative %d is %v", name, i, v)
				break
			}
			some = some || v != 0
		}
		if !some {
			t.Errorf("%s: all derivatives are 0", name)
		}
	}
}

// TestCountedPadding holds that programs, forwards and backwards, divide the windows of an AveragePool whose
// padding counts by how many elements they have of image and padding, as PyTorch does: what ceil_mode lets
// them reach beyond doesn't count, whatever the opset and the release of ONNX Runtime, and in the blocked
// layout too.
func TestCountedPadding(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		name                  string
		kernel, strides, pads []int64
		ceil                  int
	}{
		{"beyond the image", []int64{3, 3}, []int64{2, 2}, []int64{0, 0, 0, 0}, 1},
		{"beyond the padding", []int64{3, 2}, []int64{2, 2}, []int64{1, 1, 1, 1}, 1},
		{"without ceil_mode", []int64{3, 3}, []int64{2, 2}, []int64{1, 1, 1, 1}, 0},
		{"padded at the end", []int64{3, 3}, []int64{2, 2}, []int64{0, 1, 1, 1}, 1},
		{"padded along one axis", []int64{2, 2}, []int64{2, 2}, []int64{1, 0, 1, 0}, 1},
		{"padded along one axis, without ceil_mode", []int64{2, 2}, []int64{2, 2}, []int64{1, 0, 1, 0}, 0},
	} {
		windows, shape := means(tt.kernel, tt.strides, tt.pads, tt.ceil != 0)
		rows := []int64{0, 16, 72}
		plain, _ := small3(t, 17, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 16, 3, 1, 1),
			modeltest.Noise("v", 0.4, 3, 16, 2, 2),
			onnx.IntTensor("rows", rows, 3), onnx.FloatTensor("windows", windows, 72,
				len(windows)/72), onnx.IntTensor("planes", append([]int64{0, 16}, shape...), 4)},
			onnx.NewNode("before", "Conv", []string{"input", "w"}, []string{"b"}),
			onnx.NewNode("long", "Reshape", []string{"b", "rows"}, []string{"l"}),
			onnx.NewNode("pool", "MatMul", []string{"l", "windows"}, []string{"means"}),
			onnx.NewNode("high", "Reshape", []string{"means", "planes"}, []string{"p"}),
			onnx.NewNode("conv", "Conv", []string{"p", "v"}, []string{"c"}))
		slot := threaded{1, stagetest.NewSlot()}
		q := lower.Question{Rules: relevance.Derivative()}
		want, slope := differentiate(t, plain, slot, q, 2, 2)
		for _, opset := range []int64{11, 17, 19, 22} {
			n, _ := small3(t, opset, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 16, 3, 1, 1),
				modeltest.Noise("v", 0.4, 3, 16, 2, 2)},
				onnx.NewNode("before", "Conv", []string{"input", "w"}, []string{"b"}),
				onnx.NewNode("pool", "AveragePool", []string{"b"}, []string{"p"},
					onnx.Attr{Name: "kernel_shape", Value: tt.kernel}, onnx.Attr{Name: "strides",
						Value: tt.strides},
					onnx.Attr{Name: "pads", Value: tt.pads}, onnx.Attr{Name: "ceil_mode",
						Value: tt.ceil}, onnx.Attr{Name: "count_include_pad", Value: 1}),
				onnx.NewNode("conv", "Conv", []string{"p", "v"}, []string{"c"}))
			back, derivative := differentiate(t, n, slot, q, 2, 2)
			for what, d := range map[string]float64{"forwards": deviation(classify(t, n, slot, 2, 2), want),
				"backwards": deviation(back, want), "the derivative": deviation(derivative, slope)} {
				if d > 1e-5 {
					t.Errorf("opset %d, %s: %s deviates by %.1e", opset, tt.name, what, d)
				}
			}
		}
	}
}

// means returns the matrix [8·9, windows] that makes each window's mean of an image of 8×9, and how many
// windows there are along each axis.
func means(kernel, strides, pads []int64, ceil bool) (m []float32, shape []int64) {
	size := [2]int64{8, 9}
	var part [2][][]float32 // of each window along an axis, what each element counts
	for i, k := range kernel {
		end := size[i] + pads[2+i]
		for begin := -pads[i]; begin+k <= end || ceil && begin < size[i] &&
			begin+k-end < strides[i]; begin += strides[i] {
			row := make([]float32, size[i])
			for at := max(begin, 0); at < min(begin+k, size[i]); at++ {
				row[at] = 1 / float32(min(begin+k, end)-begin)
			}
			part[i] = append(part[i], row)
		}
		shape = append(shape, int64(len(part[i])))
	}
	for y := range size[0] {
		for x := range size[1] {
			for _, a := range part[0] {
				for _, b := range part[1] {
					m = append(m, a[y]*b[x])
				}
			}
		}
	}
	return m, shape
}

// TestPadBeforePool holds that a Pad before an AveragePool stays one: programs answer as ONNX Runtime does
// that optimises nothing.
func TestPadBeforePool(t *testing.T) {
	runtime := modeltest.Runtime(t)
	for _, opset := range []int64{17, 20} {
		for _, tt := range []struct {
			name    string
			pads    []int64
			ceil    int
			strides []int64
		}{
			{"at the end", []int64{0, 0, 0, 0, 0, 0, 1, 1}, 0, []int64{2, 2}},
			{"all around, beyond the image", []int64{0, 0, 1, 1, 0, 0, 1, 1}, 1, []int64{2, 2}},
			{"along one axis", []int64{0, 0, 1, 0, 0, 0, 1, 0}, 0, []int64{1, 2}},
		} {
			n, b := small3(t, opset, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2),
				onnx.IntTensor("pads", tt.pads, 8)},
				onnx.NewNode("pad", "Pad", []string{"input", "pads"}, []string{"padded"}),
				onnx.NewNode("pool", "AveragePool", []string{"padded"}, []string{"p"},
					onnx.Attr{Name: "kernel_shape", Value: []int64{3, 3}}, onnx.Attr{Name: "strides",
						Value: tt.strides}, onnx.Attr{Name: "ceil_mode", Value: tt.ceil}),
				onnx.NewNode("conv", "Conv", []string{"p", "w"}, []string{"c"}))
			s, err := runtime.NewPlainSession(b, []string{"input"}, []string{"logits"})
			if err != nil {
				t.Fatal(err)
			}
			in, err := ort.NewTensor[float32](runtime, 2, 3, 8, 9)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ort.NewTensor[float32](runtime, 2, 3)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				wave(i, in.Data[i*n.Size():(i+1)*n.Size()])
			}
			if err := s.Run(t.Context(), []ort.Value{in}, []ort.Value{want}); err != nil {
				t.Fatal(err)
			}

			slot := threaded{1, stagetest.NewSlot()}
			back, _ := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
			for way, got := range map[string][]float32{"forward": classify(t, n, slot, 2, 2),
				"backwards": back} {
				for i, w := range want.Data {
					if d := math.Abs(float64(got[i] - w)); !(d <= 1e-6) {
						t.Errorf("opset %d, %s, %s: answer %d is %v, not %v", opset, tt.name, way, i, got[i],
							w)
					}
				}
			}
		}
	}
}

// TestReluBeforeClip holds that a Relu stays a Relu before a Clip that leaves out more, as in generalised
// mean pooling: guided backprop asks for it.
func TestReluBeforeClip(t *testing.T) {
	modeltest.Runtime(t)
	n, _ := small3(t, 17, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 3, 3, 2, 2),
		onnx.FloatTensor("least", []float32{1e-6})},
		onnx.NewNode("conv", "Conv", []string{"input", "w"}, []string{"f"}),
		onnx.NewNode("relu", "Relu", []string{"f"}, []string{"r"}),
		onnx.NewNode("clip", "Clip", []string{"r", "least"}, []string{"c"}))
	g, err := n.Graph(t.Context(), threaded{1, stagetest.NewSlot()}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(g.Proto.Graph.Node,
		func(n *onnxpb.NodeProto) bool { return n.OpType == "Relu" }) {
		t.Error("the graph has no Relu")
	}
}
