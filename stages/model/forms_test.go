package model_test

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Constant behind class scores is one in each form that it may be written in.
func TestFormsOfConstants(t *testing.T) {
	modeltest.Runtime(t)
	half, two := float32(0.5), int64(2)
	for _, form := range []*onnxpb.AttributeProto{
		{Name: "value", Type: onnxpb.AttributeProto_TENSOR,
			T: onnx.FloatTensor("", []float32{0.5, 0.25, 1}, 3)},
		{Name: "value_float", Type: onnxpb.AttributeProto_FLOAT, F: &half},
		{Name: "value_floats", Type: onnxpb.AttributeProto_FLOATS, Floats: []float32{0.5, 0.25, 1}},
		{Name: "value_int", Type: onnxpb.AttributeProto_INT, I: &two},
		{Name: "value_ints", Type: onnxpb.AttributeProto_INTS, Ints: []int64{1, 2, 3}},
	} {
		g := graph{&onnxpb.GraphProto{Name: "g"}}
		pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{"image"})})
		c := g.op("Constant", nil)
		g.Node[len(g.Node)-1].Attribute = []*onnxpb.AttributeProto{form}
		if strings.HasPrefix(form.Name, "value_int") {
			c = g.op("Cast", []string{c}, onnx.Attr{Name: "to", Value: int(float)})
		}
		x := inspected(t, g, g.op("Add", []string{pooled, c}), 3)
		if x.Problem != "" {
			t.Errorf("%s: %s", form.Name, x.Problem)
		}
	}
}

// Distances are refused, of which the smallest is that of the class; their negatives are logits.
func TestDistances(t *testing.T) {
	modeltest.Runtime(t)
	axes := func(v ...int64) onnx.Attr { return onnx.Attr{Name: "axes", Value: v} }
	flat := onnx.Attr{Name: "keepdims", Value: 0}
	forms := map[string]func(g graph, d string) string{
		"L1": func(g graph, d string) string { return g.op("ReduceL1", []string{d}, axes(2), flat) },
		"L2": func(g graph, d string) string { return g.op("ReduceL2", []string{d}, axes(2), flat) },
		"square": func(g graph, d string) string {
			return g.op("ReduceSum", []string{g.op("Mul", []string{d, d}), g.ints(2)}, flat)
		},
		"power": func(g graph, d string) string {
			sum := g.op("ReduceSum", []string{g.op("Pow", []string{d, g.number(2)}), g.ints(2)}, flat)
			return g.op("Sqrt", []string{sum})
		},
		"size": func(g graph, d string) string {
			return g.op("ReduceMean", []string{g.op("Abs", []string{d})}, axes(2), flat)
		},
	}
	for name, form := range forms {
		for _, negative := range []bool{false, true} {
			g := graph{&onnxpb.GraphProto{Name: "g"}}
			pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{"image"})})
			g.Initializer = append(g.Initializer, onnx.FloatTensor("prototypes",
				[]float32{0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1}, 1, 4, 3))
			d := g.op("Sub", []string{g.op("Unsqueeze", []string{pooled, g.ints(1)}), "prototypes"})
			out := form(g, d)
			if negative {
				out = g.op("Neg", []string{out})
			}
			x := inspected(t, g, out, 4)
			if negative != (x.Problem == "") || !negative && !strings.Contains(x.Problem, "the nearest") {
				t.Errorf("%s, negative %v: %q", name, negative, x.Problem)
			}
		}
	}
}

// Logits of an untrained net may be so small that the exponentials of every row add up to the number of
// classes.
func TestSmallLogits(t *testing.T) {
	modeltest.Runtime(t)
	for _, size := range []float32{1, 1e-3, 1e-5, 1e-7} {
		g := graph{&onnxpb.GraphProto{Name: "g"}}
		pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{"image"})})
		weights := []float32{1, -2, 3, 2, 1, -1, -2, 1, 1, -1, 3, -2}
		for i := range weights {
			weights[i] *= size
		}
		g.Initializer = append(g.Initializer, onnx.FloatTensor("weights", weights, 3, 4))
		x := inspected(t, g, g.op("MatMul", []string{pooled, "weights"}), 4)
		if x.Problem != "" || x.Head.Kind != "logits" {
			t.Errorf("weights of %g: %q, kind %q", size, x.Problem, x.Head.Kind)
		}
	}
}
