package program_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// either returns an If.
func either(condition, out string, then, otherwise *onnxpb.GraphProto) *onnxpb.NodeProto {
	n := onnx.NewNode(out, "If", []string{condition}, []string{out})
	n.Attribute = []*onnxpb.AttributeProto{
		{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH, G: then},
		{Name: "else_branch", Type: onnxpb.AttributeProto_GRAPH, G: otherwise},
	}
	return n
}

// making returns a graph of nodes with these outputs.
func making(nodes []*onnxpb.NodeProto, outputs ...string) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{Name: "branch", Node: nodes}
	for _, v := range outputs {
		g.Output = append(g.Output,
			&onnxpb.ValueInfoProto{Name: v, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
				TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnxpb.TensorProto_FLOAT)}}}})
	}
	return g
}

// TestConstantBranches checks that a net whose weights are the outputs of nested Ifs on the image's shape
// has, to the bit, the answers and derivatives of the net without them.
func TestConstantBranches(t *testing.T) {
	plain := filepath.Join("testdata", "nets", "grey.onnx")
	m, err := onnx.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	g := m.Proto.Graph
	g.Initializer = append(g.Initializer, onnx.IntTensor("four", []int64{4}))
	nodes := []*onnxpb.NodeProto{
		onnx.NewNode("", "Shape", []string{m.Inputs()[0].Name}, []string{"shape"}),
		onnx.NewNode("", "Size", []string{"shape"}, []string{"rank"}),
		onnx.NewNode("", "Equal", []string{"rank", "four"}, []string{"is four"}),
		onnx.NewNode("", "Less", []string{"rank", "four"}, []string{"is less"}),
	}
	one := func(op, in, out string) *onnxpb.GraphProto {
		return making([]*onnxpb.NodeProto{onnx.NewNode("", op, []string{in}, []string{out})}, out)
	}
	large := 0
	for _, w := range g.Initializer {
		v, err := onnx.Float32s(w)
		if err != nil || len(v) < 32 {
			continue
		}
		name := w.Name
		w.Name, w.RawData, w.FloatData = name+"/negative", nil, nil
		for _, x := range v {
			w.FloatData = append(w.FloatData, -x)
		}
		inner := making([]*onnxpb.NodeProto{either("is less", "inner", one("Abs", w.Name, "value"),
			one("Neg", w.Name, "value"))}, "inner")
		nodes = append(nodes, either("is four", name, inner, one("Exp", w.Name, "value")))
		large++
	}
	if large < 2 {
		t.Fatalf("the net has %d weights of 128 bytes or more", large)
	}
	g.Node = append(nodes, g.Node...)
	branched := modeltest.File(t, m)
	answers := func(path string) (forward, gradient, derivatives []float32) {
		n := net(t, model.ONNXParams{Path: path, Preset: "unit"})
		slot := threaded{1, stagetest.NewSlot()}
		f, err := n.Forward(t.Context(), slot, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Batch {
			wave(i, f.Image(i))
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range f.Batch {
			forward = append(forward, f.Row(i)...)
		}
		gradient, derivatives = differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2,
			2)
		return forward, gradient, derivatives
	}
	wantForward, wantGradient, wantDerivatives := answers(plain)
	forward, gradient, derivatives := answers(branched)
	if !sameBits(forward, wantForward) || !sameBits(gradient, wantGradient) {
		t.Errorf("the answers are\n%v and\n%v, not\n%v", forward, gradient, wantForward)
	}
	if !sameBits(derivatives, wantDerivatives) {
		t.Error("the derivatives have other bits")
	}
}

// TestCaptured checks that passes keep values captured by an If body whole: answers are the file's.
func TestCaptured(t *testing.T) {
	modeltest.Runtime(t)
	node := func(op, out string,
		in ...string) *onnxpb.NodeProto {
		return onnx.NewNode("", op, in, []string{out})
	}
	axis := func(n *onnxpb.NodeProto) *onnxpb.NodeProto {
		n.Attribute = onnx.NewNode("", "", nil, nil, onnx.Attr{Name: "axis", Value: 1}).Attribute
		return n
	}
	mean := func(out, in string) *onnxpb.NodeProto {
		return onnx.NewNode("", "ReduceMean", []string{in}, []string{out},
			onnx.Attr{Name: "axes", Value: []int64{1}})
	}
	statistics := []*onnxpb.TensorProto{modeltest.Noise("scale", 0.7, 8), modeltest.Noise("bias", 0.3, 8),
		modeltest.Noise("mean", 0.5, 8),
		onnx.FloatTensor("var", []float32{1, 2, 3, 4, 5, 6, 7, 8}, 8)}
	for _, tt := range []struct {
		name    string
		nodes   []*onnxpb.NodeProto // from images to apart
		taken   string              // by the If
		columns int                 // of apart
		weights []*onnxpb.TensorProto
	}{
		{"merged", []*onnxpb.NodeProto{node("Conv", "conv", "input", "w"),
			node("BatchNormalization", "norm", "conv", "scale", "bias", "mean", "var"), node("Flatten",
				"apart", "norm")},
			"conv", 8 * 81, append(statistics, modeltest.Noise("w", 0.7, 8, 3, 1, 1))},
		{"narrowed", []*onnxpb.NodeProto{node("Conv", "conv", "input", "w"), node("Relu", "relu", "conv"),
			axis(node("Gather", "first", "relu", "zero")), node("Flatten", "apart", "first")},
			"relu", 81, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 8, 3, 1, 1),
				onnx.IntTensor("zero", []int64{0}, 1)}},
		{"widened", []*onnxpb.NodeProto{node("Flatten", "flat", "input"),
			node("MatMul", "hidden", "flat", "w"), node("Relu", "relu", "hidden"),
			node("MatMul", "apart", "relu", "w2")},
			"relu", 5, []*onnxpb.TensorProto{modeltest.Noise("w", 0.7, 243, 1024),
				modeltest.Noise("w2", 0.3, 1024, 5)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := func(sign string) *onnxpb.GraphProto {
				return making([]*onnxpb.NodeProto{node("Flatten", "rows", tt.taken), mean("m", "rows"),
					node(sign, "value", "m")}, "value")
			}
			nodes := slices.Concat(tt.nodes, []*onnxpb.NodeProto{
				onnx.NewNode("", "ReduceMax", []string{"input"}, []string{"most"},
					onnx.Attr{Name: "keepdims", Value: 0}),
				node("Less", "dark", "most", "half"), either("dark", "other", body("Neg"), body("Identity")),
				node("Sub", "late", "apart", "other"), node("Mul", "square", "late", "late"), node("MatMul",
					"logits", "square", "v")})
			weights := append(tt.weights, onnx.FloatTensor("half", []float32{0.5}),
				modeltest.Noise("v", 0.9, tt.columns, 3))
			m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
				OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
				Graph:       &onnxpb.GraphProto{Name: "g", Node: nodes, Initializer: weights}}}
			m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3, 9, 9},
				Known: true})
			m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3},
				Known: true})
			p := model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Size: picture.Size{H: 9, W: 9}}
			n, want, slot := net(t, p), asWritten(t, p.Path, 2, 9), stagetest.NewSlot()
			got, _ := differentiate(t, n, slot,
				lower.Question{Layer: "late", Rules: relevance.Derivative()}, 2, 2)
			if d := deviation(got, want); d > 1e-5 {
				t.Errorf("answers deviate by %.2g from those of the file", d)
			}

			// Whose value the If takes is put in, of one image, while another is there.
			images := make([][]float32, 2)
			for i := range images {
				images[i] = make([]float32, n.Size())
				wave(i, images[i])
			}
			values, _, err := n.Values(t.Context(), slot, tt.taken, images[:1], 2)
			if err != nil {
				t.Fatal(err)
			}
			l, err := n.Line(t.Context(), slot, tt.taken, 2)
			if err != nil {
				t.Fatal(err)
			}
			l.Set(values[0], values[0], images[1])
			if err := l.Run(t.Context(), []float64{0}); err != nil {
				t.Fatal(err)
			}
			if d := deviation(l.Row(0), want[:3]); d > 1e-5 {
				t.Errorf("answers to what is put in deviate by %.2g from those of the file", d)
			}
		})
	}
}

// TestCapturedInBackward checks that a backward pass reports an If that captures a value in its bodies alone,
// and that no layer before it is final.
func TestCapturedInBackward(t *testing.T) {
	modeltest.Runtime(t)
	node := func(op, out string,
		in ...string) *onnxpb.NodeProto {
		return onnx.NewNode("", op, in, []string{out})
	}
	body := func(op string) *onnxpb.GraphProto {
		return making([]*onnxpb.NodeProto{node(op, "value", "first")}, "value")
	}
	square := make([]float32, 9)
	for i := range square {
		square[i] = float32(i) - 4
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{Name: "g", Node: []*onnxpb.NodeProto{
			node("Conv", "c1", "input", "w"), node("Tanh", "first", "c1"), node("Conv", "c2", "first",
				"w"), node("Relu", "second", "c2"),
			onnx.NewNode("", "ReduceMax", []string{"input"}, []string{"most"},
				onnx.Attr{Name: "keepdims", Value: 0}),
			node("Less", "dark", "most", "half"), either("dark", "other", body("Neg"), body("Exp")),
			node("Add", "late", "second", "other"), node("GlobalAveragePool", "pooled",
				"late"), node("Flatten", "logits", "pooled"),
		}, Initializer: []*onnxpb.TensorProto{onnx.FloatTensor("half", []float32{0.5}), onnx.FloatTensor("w",
			square, 3, 3, 1, 1)}}}}
	m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3, 9, 9},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3}, Known: true})
	n := net(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Size: picture.Size{H: 9, W: 9}})
	g, err := n.Graph(t.Context(), stagetest.NewSlot(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, final := relevance.Layers(g); final != "late" {
		t.Errorf("the final layer is %q", final)
	}
	_, err = n.Gradient(t.Context(), stagetest.NewSlot(),
		lower.Question{Layer: "first", Rules: relevance.Derivative()}, 2)
	if err == nil || !strings.Contains(err.Error(), `If "other"`) {
		t.Errorf("the error is %v", err)
	}
}
