package lower_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

// TestDetachWeights holds that ONNX Runtime simplifies a net without the weights that only multiply matrices
// to what it makes of it with them. Of equal constants it keeps one or the other.
func TestDetachWeights(t *testing.T) {
	modeltest.Runtime(t)
	taken := 0
	all := modeltest.Nets(t, true)
	all["a function of the shape"] = functional(t)
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			s := modeltest.Source(t, p)
			want, _ := lower.Simplified(t, s, cmp.Or(s.Batch, 2), 0)
			got, count := lower.Simplified(t, s, cmp.Or(s.Batch, 2), 1)
			taken += count
			called(want)
			called(got)
			if !proto.Equal(got.Proto, want.Proto) {
				t.Errorf("another model without %d weights", count)
			}
		})
	}
	if taken < 20 {
		t.Errorf("%d weights were taken out of all nets", taken)
	}
}

// called gives every weight of a model the name of what it holds.
func called(m *onnx.Model) {
	g := m.Proto.Graph
	names := map[string]string{}
	for _, w := range g.Initializer {
		was := w.Name
		w.Name = ""
		b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(w)
		names[was] = fmt.Sprintf("%x", sha256.Sum256(b))
		w.Name = names[was]
	}
	for _, n := range g.Node {
		onnx.Retake(n, names)
	}
	slices.SortFunc(g.Initializer,
		func(a, b *onnxpb.TensorProto) int { return strings.Compare(a.Name, b.Name) })
	g.Initializer = slices.CompactFunc(g.Initializer,
		func(a, b *onnxpb.TensorProto) bool { return a.Name == b.Name })
}

// functional writes a net with a matrix of ones that a function of its own makes for its images: it depends
// on their shape alone, and ONNX Runtime inlines the function.
func functional(t *testing.T) model.ONNXParams {
	t.Helper()
	const pixels, classes = 3 * 4 * 4, 2
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}, {Domain: "own", Version: 1}},
		Functions: []*onnxpb.FunctionProto{{
			Domain: "own", Name: "Ones", Input: []string{"a"}, Output: []string{"b"},
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("", "Shape", []string{"a"}, []string{"s"}),
				onnx.NewNode("", "Constant", nil, []string{"c"},
					onnx.Attr{Name: "value_float", Value: float32(1)}),
				onnx.NewNode("", "Expand", []string{"c", "s"}, []string{"b"}),
			},
		}},
		Graph: &onnxpb.GraphProto{Name: "g", Initializer: []*onnxpb.TensorProto{modeltest.Noise("u", 0.7,
			pixels, pixels), modeltest.Noise("v", 0.9, pixels, classes)}, Node: []*onnxpb.NodeProto{
			onnx.NewNode("flat", "Flatten", []string{"input"}, []string{"f"}),
			{Name: "ones", OpType: "Ones", Domain: "own", Input: []string{"f"}, Output: []string{"o"}},
			onnx.NewNode("mix", "MatMul", []string{"o", "u"}, []string{"p"}),
			onnx.NewNode("add", "Add", []string{"f", "p"}, []string{"q"}),
			onnx.NewNode("out", "MatMul", []string{"q", "v"}, []string{"logits"}),
		}},
	}}
	m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3, 4, 4},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, classes},
		Known: true})
	return model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"}
}
