package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// model returns one of an opset, with nodes and the weights that they take.
func model(opset int, nodes []*onnxpb.NodeProto, weights ...*onnxpb.TensorProto) *onnx.Model {
	var outputs []*onnxpb.ValueInfoProto
	for _, n := range nodes {
		for _, v := range n.Output {
			outputs = append(outputs, &onnxpb.ValueInfoProto{Name: v})
		}
	}
	return &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(opset)}},
		Graph: &onnxpb.GraphProto{
			Node: nodes, Initializer: weights, Output: outputs,
			Input: []*onnxpb.ValueInfoProto{{Name: "x"}},
		},
	}}
}

// node returns one that takes in and makes y.
func node(op, in string, attrs ...onnx.Attr) *onnxpb.NodeProto {
	return onnx.NewNode("n", op, strings.Split(in, " "), []string{"y"}, attrs...)
}

func attr(name string, v any) onnx.Attr { return onnx.Attr{Name: name, Value: v} }

func list64(v ...int64) []int64 { return v }

// text writes a model's nodes down, constants as what they hold.
func text(t *testing.T, m *onnx.Model) []string {
	t.Helper()
	constants := map[string]string{}
	for _, w := range m.Proto.Graph.Initializer {
		if v, err := onnx.Int64s(w); err == nil {
			constants[w.Name] = fmt.Sprint(v)
		} else if v, err := onnx.Float32s(w); err == nil {
			constants[w.Name] = fmt.Sprint(v)
		}
	}
	var out []string
	for _, n := range m.Proto.Graph.Node {
		var ins, attrs []string
		for _, v := range n.Input {
			if c, ok := constants[v]; ok {
				v = c
			}
			ins = append(ins, v)
		}
		for _, a := range n.Attribute {
			switch a.Type {
			case onnxpb.AttributeProto_INT:
				attrs = append(attrs, fmt.Sprintf(" %s=%d", a.Name, a.GetI()))
			case onnxpb.AttributeProto_INTS:
				attrs = append(attrs, fmt.Sprintf(" %s=%d", a.Name, a.Ints))
			case onnxpb.AttributeProto_STRING:
				attrs = append(attrs, fmt.Sprintf(" %s=%s", a.Name, a.S))
			default:
				attrs = append(attrs, " "+a.Name)
			}
		}
		out = append(out, fmt.Sprintf("%s = %s(%s)%s", strings.Join(n.Output, ", "), n.OpType, strings.Join(ins, ", "), strings.Join(attrs, "")))
	}
	return out
}

func ints(name string, v ...int64) *onnxpb.TensorProto { return onnx.IntTensor(name, v, len(v)) }

// TestToOpset holds what the passes write.
func TestToOpset(t *testing.T) {
	f32 := func(name string, v ...float32) *onnxpb.TensorProto { return onnx.FloatTensor(name, v, len(v)) }
	upsample := node("Upsample", "x", attr("mode", "linear"))
	upsample.Attribute = append(upsample.Attribute, &onnxpb.AttributeProto{Name: "scales", Type: onnxpb.AttributeProto_FLOATS, Floats: []float32{1, 1, 2, 2}})
	two := func(op string, attrs ...onnx.Attr) *onnxpb.NodeProto {
		n := node(op, "x", attrs...)
		n.Output = []string{"y", "z"}
		return n
	}
	tests := []struct {
		name    string
		opset   int
		node    *onnxpb.NodeProto
		weights []*onnxpb.TensorProto
		want    []string
	}{
		{"what didn't change", 7, node("Relu", "x"), nil, []string{"y = Relu(x)"}},
		{"Slice", 9, node("Slice", "x", attr("starts", list64(1)), attr("ends", list64(3)), attr("axes", list64(2))), nil, []string{"y = Slice(x, [1], [3], [2])"}},
		{"Slice of all axes", 7, node("Slice", "x", attr("starts", list64(1)), attr("ends", list64(3))), nil, []string{"y = Slice(x, [1], [3])"}},
		{"Squeeze", 12, node("Squeeze", "x", attr("axes", list64(0))), nil, []string{"y = Squeeze(x, [0])"}},
		{"Squeeze of all", 12, node("Squeeze", "x"), nil, []string{"y = Squeeze(x)"}},
		{"Unsqueeze", 11, node("Unsqueeze", "x", attr("axes", list64(0, 3))), nil, []string{"y = Unsqueeze(x, [0 3])"}},
		{"Split", 12, two("Split", attr("axis", 1), attr("split", list64(1, 3))), nil, []string{"y, z = Split(x, [1 3]) axis=1"}},
		{"Split by number", 18, two("Split", attr("axis", -1), attr("num_outputs", 2)), nil, []string{"y, z = Split(x, [3 2]) axis=-1"}},
		{"Split in equal parts", 13, two("Split"), nil, []string{"y, z = Split(x)"}},
		{"ReduceSum", 12, node("ReduceSum", "x", attr("axes", list64(1)), attr("keepdims", 0)), nil, []string{"y = ReduceSum(x, [1]) keepdims=0"}},
		{"ReduceSum of 13", 13, node("ReduceSum", "x a"), []*onnxpb.TensorProto{ints("a", 1)}, []string{"y = ReduceSum(x, [1])"}},
		{"ReduceMean of 18", 18, node("ReduceMean", "x a", attr("keepdims", 0)), []*onnxpb.TensorProto{ints("a", 2, 3)}, []string{"y = ReduceMean(x) keepdims=0 axes=[2 3]"}},
		{"ReduceMax of all", 20, node("ReduceMax", "x"), nil, []string{"y = ReduceMax(x)"}},
		{"ReduceMax of none", 20, node("ReduceMax", "x", attr("noop_with_empty_axes", 1)), nil, []string{"y = Identity(x)"}},
		{"Softmax of rows", 12, node("Softmax", "x", attr("axis", 3)), nil, []string{"y = Softmax(x) axis=-1"}},
		{"Softmax over what follows", 9, node("Softmax", "x"), nil, []string{
			"y/Flatten = Flatten(x) axis=1", "y/Softmax = Softmax(y/Flatten) axis=-1", "y/Shape = Shape(x)", "y = Reshape(y/Softmax, y/Shape)"}},
		{"Softmax of 13", 13, node("Softmax", "x", attr("axis", 1)), nil, []string{"y = Softmax(x) axis=1"}},
		{"Pad", 10, node("Pad", "x", attr("pads", list64(0, 0, 1, 1)), attr("value", float32(2))), nil, []string{"y = Pad(x, [0 0 1 1], [2])"}},
		{"Pad of some axes", 19, node("Pad", "x p  a"), []*onnxpb.TensorProto{ints("p", 1, 2), ints("a", -2)}, []string{"y = Pad(x, [0 0 1 0 0 0 2 0], )"}},
		{"Clip", 10, node("Clip", "x", attr("min", float32(0)), attr("max", float32(6))), nil, []string{"y = Clip(x, [0], [6])"}},
		{"Clip from above", 7, node("Clip", "x", attr("max", float32(6))), nil, []string{"y = Clip(x, , [6])"}},
		{"Dropout", 10, node("Dropout", "x", attr("ratio", float32(0.5))), nil, []string{"y = Identity(x)"}},
		{"BatchNormalization", 8, node("BatchNormalization", "x a b c d", attr("spatial", 1)), nil, []string{"y = BatchNormalization(x, a, b, c, d)"}},
		{"Upsample", 7, upsample, nil, []string{"y = Resize(x, , [1 1 2 2]) mode=linear coordinate_transformation_mode=asymmetric nearest_mode=floor"}},
		{"Upsample of 9", 9, node("Upsample", "x s"), []*onnxpb.TensorProto{f32("s", 1, 1, 2, 2)}, []string{"y = Resize(x, , [1 1 2 2]) coordinate_transformation_mode=asymmetric nearest_mode=floor"}},
		{"Resize of 10", 10, node("Resize", "x s"), []*onnxpb.TensorProto{f32("s", 1, 1, 2, 2)}, []string{"y = Resize(x, , [1 1 2 2]) coordinate_transformation_mode=asymmetric nearest_mode=floor"}},
		{"Resize by some scales", 18, node("Resize", "x  s", attr("axes", list64(2)), attr("antialias", 0)), []*onnxpb.TensorProto{f32("s", 3)}, []string{"y = Resize(x, , [1 1 3 1])"}},
		{"Resize to some sizes", 19, node("Resize", "x   s", attr("axes", list64(-1))), []*onnxpb.TensorProto{ints("s", 7)}, []string{"y = Resize(x, , , [2 3 4 7])"}},
		{"TopK", 9, node("TopK", "x", attr("k", 3), attr("axis", 1)), nil, []string{"y = TopK(x, [3]) axis=1"}},
		{"Scatter", 9, node("Scatter", "x i u"), nil, []string{"y = ScatterElements(x, i, u)"}},
		{"RoiAlign", 15, node("RoiAlign", "x r i"), nil, []string{"y = RoiAlign(x, r, i) coordinate_transformation_mode=output_half_pixel"}},
		{"GridSample", 20, node("GridSample", "x g"), nil, []string{"y = GridSample(x, g) mode=bilinear"}},
		{"Cast", 21, node("Cast", "x", attr("to", 1), attr("saturate", 1)), nil, []string{"y = Cast(x) to=1"}},
		{"AveragePool", 22, node("AveragePool", "x", attr("dilations", list64(1, 1))), nil, []string{"y = AveragePool(x)"}},
		{"Gelu", 20, node("Gelu", "x"), nil, []string{
			"y/Div = Div(x, [1.4142135])", "y/Erf = Erf(y/Div)", "y/Add = Add(y/Erf, [1])", "y/Mul = Mul(x, y/Add)", "y = Mul(y/Mul, [0.5])"}},
		{"RMSNormalization", 23, node("RMSNormalization", "x s", attr("axis", 2)), nil, []string{
			"y/Mul = Mul(x, x)", "y/ReduceMean = ReduceMean(y/Mul) axes=[2 3]", "y/Add = Add(y/ReduceMean, [1e-05])", "y/Sqrt = Sqrt(y/Add)",
			"y/Div = Div(x, y/Sqrt)", "y = Mul(y/Div, s)"}},
		{"Mish", 18, node("Mish", "x"), nil, []string{"y/Softplus = Softplus(x)", "y/Tanh = Tanh(y/Softplus)", "y = Mul(x, y/Tanh)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := model(tt.opset, []*onnxpb.NodeProto{tt.node}, tt.weights...)
			if err := ToOpset(m, map[string][]int{"x": {2, 3, 4, 5}}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, text(t, m)); d != "" {
				t.Error(d)
			}
			if m.Opset() != Opset {
				t.Errorf("opset %d", m.Opset())
			}
		})
	}
}

// TestToOpsetRefuses holds in which words nodes are refused that no opset-17 model
// can have.
func TestToOpsetRefuses(t *testing.T) {
	tests := []struct {
		name  string
		opset int
		node  *onnxpb.NodeProto
		want  string
	}{
		{"an ancient model", 6, node("Relu", "x"), "the model uses opset 6: 7 to 23 are supported"},
		{"a model of the future", 24, node("Relu", "x"), "the model uses opset 24"},
		{"a new operator", 23, node("Attention", "x"), `node Attention "n": opset 17 has no such operator`},
		{"a mask that is read", 10, onnx.NewNode("n", "Dropout", []string{"x"}, []string{"y", "mask"}), "its mask is read"},
		{"training", 14, node("BatchNormalization", "x a b c d", attr("training_mode", 1)), "it is written for training"},
		{"old training", 9, onnx.NewNode("n", "BatchNormalization", []string{"x"}, []string{"y", "m"}), "it is written for training"},
		{"single positions", 7, node("BatchNormalization", "x", attr("spatial", 0)), "of single positions"},
		{"axes from elsewhere", 18, node("ReduceMean", "x a"), `"a" isn't constant`},
		{"wrapping", 19, node("Pad", "x p", attr("mode", "wrap")), "can't pad in the mode wrap"},
		{"an axis too many", 18, node("Pad", "x p  p"), `"p" isn't constant`},
		{"dilation", 19, node("AveragePool", "x", attr("dilations", list64(2, 1))), "no dilated AveragePool"},
		{"antialias", 18, node("Resize", "x  s", attr("antialias", 1)), "can't resize without aliasing"},
		{"an unknown shape", 18, onnx.NewNode("n", "Split", []string{"z"}, []string{"y"}, attr("num_outputs", 1)), `the shape of "z" isn't known`},
		{"scattering", 18, node("ScatterND", "x i u", attr("reduction", "max")), "can't scatter by max"},
		{"a node without inputs", 10, &onnxpb.NodeProto{OpType: "Clip", Output: []string{"y"}}, "it has no input"},
	}
	for _, tt := range tests {
		err := ToOpset(model(tt.opset, []*onnxpb.NodeProto{tt.node}), map[string][]int{"x": {2, 3, 4, 5}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// TestToOpsetNamesAll holds that every node in the way is named.
func TestToOpsetNamesAll(t *testing.T) {
	foreign := node("Fused", "x")
	foreign.Domain, foreign.Name = "com.example", "first"
	second := onnx.NewNode("second", "Col2Im", []string{"x"}, []string{"z"})
	err := ToOpset(model(18, []*onnxpb.NodeProto{foreign, node("Relu", "x"), second}), nil)
	want := `the model can't be brought from opset 18 to 17: node Fused "first": its operator is of com.example, not one of ONNX's own; node Col2Im "second": opset 17 has no such operator`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestToOpsetInside holds that graphs inside nodes are brought over too.
func TestToOpsetInside(t *testing.T) {
	inner := &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node("Squeeze", "x", attr("axes", list64(0)))}}
	loop := node("If", "x")
	loop.Attribute = []*onnxpb.AttributeProto{{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH, G: inner}}
	m := model(12, []*onnxpb.NodeProto{loop})
	if err := ToOpset(m, nil); err != nil {
		t.Fatal(err)
	}
	if n := inner.Node[0]; len(n.Input) != 2 || len(n.Attribute) != 0 || len(m.Proto.Graph.Initializer) != 1 {
		t.Errorf("%v", n)
	}
}

// TestPassesDontOverlap holds that at most one pass matches a node.
func TestPassesDontOverlap(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range passes() {
		if p.from > p.to || p.from < Oldest || p.to > Newest {
			t.Errorf("%s: from %d to %d", p.op, p.from, p.to)
		}
		for v := p.from; v <= p.to; v++ {
			key := fmt.Sprint(p.op, " of opset ", v)
			if seen[key] {
				t.Errorf("two passes for %s", key)
			}
			seen[key] = true
		}
	}
}
