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
		out = append(out, fmt.Sprintf("%s = %s(%s)%s", strings.Join(n.Output, ", "), n.OpType,
			strings.Join(ins, ", "), strings.Join(attrs, "")))
	}
	return out
}

func ints(name string, v ...int64) *onnxpb.TensorProto { return onnx.IntTensor(name, v, len(v)) }

// types are those of what nodes take in tests.
var types = map[string]onnx.Type{
	"x": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2, 3, 4, 5}},
	"s": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2, 3, 2}},
	"g": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2, 6, 7, 2}},

	"long": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2, 1, 1 << 14, 4}},
	"none": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{0, 2}},
	"huge": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2, 2, 1 << 62}},
}

// flags returns a constant of truth values in rows.
func flags(name string, rows int, v ...byte) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_BOOL),
		Dims: []int64{int64(rows), int64(len(v) / rows)}, RawData: v}
}

// bytes returns a constant of bytes.
func bytes(name string, v ...byte) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_UINT8),
		Dims: []int64{int64(len(v))}, RawData: v}
}

// TestToOpset holds what the passes write.
func TestToOpset(t *testing.T) {
	scaler := node("ImageScaler", "x", attr("scale", float32(2)))
	scaler.Attribute = append(scaler.Attribute,
		&onnxpb.AttributeProto{Name: "bias", Type: onnxpb.AttributeProto_FLOATS, Floats: []float32{1, 2, 3}})
	f32 := func(name string, v ...float32) *onnxpb.TensorProto { return onnx.FloatTensor(name, v, len(v)) }
	upsample := node("Upsample", "x", attr("mode", "linear"))
	upsample.Attribute = append(upsample.Attribute, &onnxpb.AttributeProto{Name: "scales",
		Type: onnxpb.AttributeProto_FLOATS, Floats: []float32{1, 1, 2, 2}})
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
		{"Slice", 9, node("Slice", "x", attr("starts", list64(1)), attr("ends", list64(3)),
			attr("axes", list64(2))), nil, []string{"y = Slice(x, [1], [3], [2])"}},
		{"Slice of all axes", 7, node("Slice", "x", attr("starts", list64(1)), attr("ends", list64(3))), nil,
			[]string{"y = Slice(x, [1], [3])"}},
		{"Squeeze", 12, node("Squeeze", "x", attr("axes", list64(0))), nil, []string{"y = Squeeze(x, [0])"}},
		{"Squeeze of all", 12, node("Squeeze", "x"), nil, []string{"y = Squeeze(x)"}},
		{"Unsqueeze", 11, node("Unsqueeze", "x", attr("axes", list64(0, 3))), nil,
			[]string{"y = Unsqueeze(x, [0 3])"}},
		{"Split", 12, two("Split", attr("axis", 1), attr("split", list64(1, 3))), nil,
			[]string{"y, z = Split(x, [1 3]) axis=1"}},
		{"Split by number", 18, two("Split", attr("axis", -1), attr("num_outputs", 2)), nil,
			[]string{"y, z = Split(x, [3 2]) axis=-1"}},
		{"Split in equal parts", 13, two("Split"), nil, []string{"y, z = Split(x)"}},
		{"ReduceSum", 12, node("ReduceSum", "x", attr("axes", list64(1)), attr("keepdims", 0)), nil,
			[]string{"y = ReduceSum(x, [1]) keepdims=0"}},
		{"ReduceSum of 13", 13, node("ReduceSum", "x a"), []*onnxpb.TensorProto{ints("a", 1)},
			[]string{"y = ReduceSum(x, [1])"}},
		{"ReduceMean of 18", 18, node("ReduceMean", "x a", attr("keepdims", 0)),
			[]*onnxpb.TensorProto{ints("a", 2, 3)}, []string{"y = ReduceMean(x) keepdims=0 axes=[2 3]"}},
		{"ReduceMax of all", 20, node("ReduceMax", "x"), nil, []string{"y = ReduceMax(x)"}},
		{"ReduceMax of none", 20, node("ReduceMax", "x", attr("noop_with_empty_axes", 1)), nil,
			[]string{"y = Identity(x)"}},
		{"Softmax of rows", 12, node("Softmax", "x", attr("axis", 3)), nil,
			[]string{"y = Softmax(x) axis=-1"}},
		{"Softmax over what follows", 9, node("Softmax", "x"), nil, []string{
			"y/Flatten = Flatten(x) axis=1", "y/Softmax = Softmax(y/Flatten) axis=-1", "y/Shape = Shape(x)",
			"y = Reshape(y/Softmax, y/Shape)"}},
		{"Softmax of 13", 13, node("Softmax", "x", attr("axis", 1)), nil, []string{"y = Softmax(x) axis=1"}},
		{"Pad", 10, node("Pad", "x", attr("pads", list64(0, 0, 1, 1)), attr("value", float32(2))), nil,
			[]string{"y = Pad(x, [0 0 1 1], [2])"}},
		{"Pad of some axes", 19, node("Pad", "x p  a"), []*onnxpb.TensorProto{ints("p", 1, 2), ints("a", -2)},
			[]string{"y = Pad(x, [0 0 1 0 0 0 2 0], )"}},
		{"Clip", 10, node("Clip", "x", attr("min", float32(0)), attr("max", float32(6))), nil,
			[]string{"y = Clip(x, [0], [6])"}},
		{"Clip from above", 7, node("Clip", "x", attr("max", float32(6))), nil,
			[]string{"y = Clip(x, , [6])"}},
		{"Dropout", 10, node("Dropout", "x", attr("ratio", float32(0.5))), nil, []string{"y = Identity(x)"}},
		{"BatchNormalization", 8, node("BatchNormalization", "x a b c d", attr("spatial", 1)), nil,
			[]string{"y = BatchNormalization(x, a, b, c, d)"}},
		{"Upsample", 7, upsample, nil,
			[]string{"y = Resize(x, , [1 1 2 2]) mode=linear coordinate_transformation_mode=asymmetric " +
				"nearest_mode=floor"}},
		{"Upsample of 9", 9, node("Upsample", "x s"), []*onnxpb.TensorProto{f32("s", 1, 1, 2, 2)},
			[]string{"y = Resize(x, , [1 1 2 2]) " +
				"coordinate_transformation_mode=asymmetric nearest_mode=floor"}},
		{"Resize of 10", 10, node("Resize", "x s"), []*onnxpb.TensorProto{f32("s", 1, 1, 2, 2)},
			[]string{"y = Resize(x, , [1 1 2 2]) " +
				"coordinate_transformation_mode=asymmetric nearest_mode=floor"}},
		{"Resize by some scales", 18, node("Resize", "x  s", attr("axes", list64(2)), attr("antialias", 0)),
			[]*onnxpb.TensorProto{f32("s", 3)}, []string{"y = Resize(x, , [1 1 3 1])"}},
		{"Resize to some sizes", 19, node("Resize", "x   s", attr("axes", list64(-1))),
			[]*onnxpb.TensorProto{ints("s", 7)}, []string{"y = Resize(x, , , [2 3 4 7])"}},
		{"TopK", 9, node("TopK", "x", attr("k", 3), attr("axis", 1)), nil,
			[]string{"y = TopK(x, [3]) axis=1"}},
		{"Scatter", 9, node("Scatter", "x i u"), nil, []string{"y = ScatterElements(x, i, u)"}},
		{"RoiAlign", 15, node("RoiAlign", "x r i"), nil,
			[]string{"y = RoiAlign(x, r, i) coordinate_transformation_mode=output_half_pixel"}},
		{"GridSample by cubes", 20, node("GridSample", "x g", attr("mode", "cubic")), nil,
			[]string{"y = GridSample(x, g) mode=bicubic"}},
		{"GridSample of reflections", 20, node("GridSample", "x g", attr("padding_mode", "reflection")), nil,
			[]string{"y = GridSample(x, g) padding_mode=reflection mode=bilinear"}},
		{"Cast", 21, node("Cast", "x", attr("to", 1), attr("saturate", 1)), nil,
			[]string{"y = Cast(x) to=1"}},
		{"AveragePool", 22, node("AveragePool", "x", attr("dilations", list64(1, 1))), nil,
			[]string{"y = AveragePool(x)"}},
		{"AveragePool beyond the image", 19,
			node("AveragePool", "x", attr("kernel_shape", list64(2, 2)), attr("strides", list64(2, 2)),
				attr("ceil_mode", 1), attr("count_include_pad", 1)), nil, []string{
				"y/AveragePool = AveragePool(x) kernel_shape=[2 2] strides=[2 2] count_include_pad=1 " +
					"pads=[0 0 0 1]", "y = Mul(y/AveragePool, [1 1 2 1 1 2])"}},
		{"AveragePool beyond the padding", 17,
			node("AveragePool", "x", attr("kernel_shape", list64(2, 2)), attr("strides", list64(2, 2)),
				attr("pads", list64(1, 0, 0, 0)), attr("ceil_mode", 1), attr("count_include_pad",
					1)), nil, []string{
				"y/AveragePool = AveragePool(x) kernel_shape=[2 2] strides=[2 2] count_include_pad=1 " +
					"pads=[1 0 1 1]", "y = Mul(y/AveragePool, [1 1 2 1 1 2 2 2 4])"}},
		{"AveragePool with automatic padding", 19,
			node("AveragePool", "x", attr("kernel_shape", list64(2, 2)), attr("auto_pad", "SAME_UPPER"),
				attr("count_include_pad", 1)), nil,
			[]string{"y = AveragePool(x) kernel_shape=[2 2] auto_pad=SAME_UPPER count_include_pad=1"}},
		{"AveragePool with padding", 19,
			node("AveragePool", "x", attr("kernel_shape", list64(2, 2)), attr("pads", list64(1, 1, 1, 1)),
				attr("count_include_pad", 1)), nil,
			[]string{"y = AveragePool(x) kernel_shape=[2 2] pads=[1 1 1 1] count_include_pad=1"}},
		{"Gelu", 20, node("Gelu", "x"), nil, []string{
			"y/Div = Div(x, [1.4142135])", "y/Erf = Erf(y/Div)", "y/Add = Add(y/Erf, [1])",
			"y/Mul = Mul(x, y/Add)", "y = Mul(y/Mul, [0.5])"}},
		{"RMSNormalization", 23, node("RMSNormalization", "x s", attr("axis", 2)), nil, []string{
			"y/Mul = Mul(x, x)", "y/ReduceMean = ReduceMean(y/Mul) axes=[2 3]",
			"y/Add = Add(y/ReduceMean, [1e-05])", "y/Sqrt = Sqrt(y/Add)",
			"y/Div = Div(x, y/Sqrt)", "y = Mul(y/Div, s)"}},
		{"Attention", 23, node("Attention", "x x x", attr("is_causal", 1)), nil, []string{
			"y/Mul = Mul(x, [0.4472136])", "y/Transpose = Transpose(x) perm=[0 1 3 2]",
			"y/MatMul = MatMul(y/Mul, y/Transpose)",
			"y/Add = Add(y/MatMul, [0 -1e+30 -1e+30 -1e+30 0 0 -1e+30 -1e+30 0 0 0 -1e+30 0 0 0 0])",
			"y/Softmax = Softmax(y/Add) axis=-1",
			"y/MatMul_1 = MatMul(y/Softmax, x)", "y = Reshape(y/MatMul_1, [2 3 4 5])"}},
		{"Attention with keys seen and one query that sees none", 23, node("Attention", "x x x m"),
			[]*onnxpb.TensorProto{flags("m", 2, 1, 1, 0, 0)}, []string{
				"y/Mul = Mul(x, [0.4472136])", "y/Transpose = Transpose(x) perm=[0 1 3 2]",
				"y/MatMul = MatMul(y/Mul, y/Transpose)",
				"y/Where = Where(m, [0], [-1e+30])", "y/ReduceMax = ReduceMax(y/Where) axes=[-1]",
				"y/Greater = Greater(y/ReduceMax, [-5e+29])", "y/Cast = Cast(y/Greater) to=1",
				"y/Add = Add(y/MatMul, y/Where)", "y/Softmax = Softmax(y/Add) axis=-1",
				"y/Mul_1 = Mul(y/Softmax, y/Cast)",
				"y/MatMul_1 = MatMul(y/Mul_1, x)", "y = Reshape(y/MatMul_1, [2 3 4 5])"}},
		{"Attention with keys seen", 23, node("Attention", "x x x m"),
			[]*onnxpb.TensorProto{flags("m", 2, 1, 1, 0, 1)}, []string{
				"y/Mul = Mul(x, [0.4472136])", "y/Transpose = Transpose(x) perm=[0 1 3 2]",
				"y/MatMul = MatMul(y/Mul, y/Transpose)",
				"y/Where = Where(m, [0], [-1e+30])", "y/Add = Add(y/MatMul, y/Where)",
				"y/Softmax = Softmax(y/Add) axis=-1",
				"y/MatMul_1 = MatMul(y/Softmax, x)", "y = Reshape(y/MatMul_1, [2 3 4 5])"}},
		{"Col2Im", 18, node("Col2Im", "s i b", attr("strides", list64(2, 1)), attr("pads",
			list64(1, 0, 0, 0))), []*onnxpb.TensorProto{ints("i", 4, 1), ints("b", 3, 1)}, []string{
			"y/Reshape = Reshape(s, [2 3 2 1])",
			"y = ConvTranspose(y/Reshape, [1 0 0 0 1 0 0 0 1]) group=1 kernel_shape=[3 1] strides=[2 1] " +
				"dilations=[1 1] pads=[1 0 0 0] output_padding=[0 0]"}},
		{"LSTM", 14, node("LSTM", "s w r", attr("hidden_size", 1)), []*onnxpb.TensorProto{
			onnx.FloatTensor("w", []float32{1, 2, 3, 4, 5, 6, 7, 8}, 1, 4, 2), onnx.FloatTensor("r",
				[]float32{1, 2, 3, 4}, 1, 4, 1)}, []string{
			"y/Reshape = Reshape(s, [6 2])", "y/Gemm = Gemm(y/Reshape, [1 3 5 7 2 4 6 8])",
			"y/Reshape_1 = Reshape(y/Gemm, [2 1 3 4])",
			"y/Split, y/Split_1 = Split(y/Reshape_1, [1 1]) axis=0",
			"y/Split_2, y/Split_3 = Split(y/Split, [3 1]) axis=3", "y/Sigmoid = Sigmoid(y/Split_2)",
			"y/Split_4, y/Split_5, y/Split_6 = Split(y/Sigmoid, [1 1 1]) axis=3", "y/Tanh = Tanh(y/Split_3)",
			"y/Mul = Mul(y/Split_4, y/Tanh)", "y/Tanh_1 = Tanh(y/Mul)", "y/Mul_1 = Mul(y/Split_5, y/Tanh_1)",
			"y/MatMul = MatMul(y/Mul_1, [1 2 3 4])", "y/Add = Add(y/Split_1, y/MatMul)",
			"y/Split_7, y/Split_8 = Split(y/Add, [3 1]) axis=3", "y/Sigmoid_1 = Sigmoid(y/Split_7)",
			"y/Split_9, y/Split_10, y/Split_11 = Split(y/Sigmoid_1, [1 1 1]) axis=3",
			"y/Tanh_2 = Tanh(y/Split_8)",
			"y/Mul_2 = Mul(y/Split_9, y/Tanh_2)", "y/Mul_3 = Mul(y/Split_11, y/Mul)",
			"y/Add_1 = Add(y/Mul_3, y/Mul_2)",
			"y/Tanh_3 = Tanh(y/Add_1)", "y/Mul_4 = Mul(y/Split_10, y/Tanh_3)",
			"y/Concat = Concat(y/Mul_1, y/Mul_4) axis=0", "y = Concat(y/Concat) axis=1"}},
		{"RotaryEmbedding", 23, node("RotaryEmbedding", "s c c", attr("num_heads", 1)), nil, []string{
			"y/Reshape = Reshape(s, [2 3 1 2])", "y/Unsqueeze = Unsqueeze(c, [2])",
			"y/Unsqueeze_1 = Unsqueeze(c, [2])",
			"y/Split, y/Split_1 = Split(y/Reshape, [1 1]) axis=3", "y/Mul = Mul(y/Split, y/Unsqueeze)",
			"y/Mul_1 = Mul(y/Split_1, y/Unsqueeze_1)",
			"y/Sub = Sub(y/Mul, y/Mul_1)", "y/Mul_2 = Mul(y/Split, y/Unsqueeze_1)",
			"y/Mul_3 = Mul(y/Split_1, y/Unsqueeze)", "y/Add = Add(y/Mul_2, y/Mul_3)",
			"y/Concat = Concat(y/Sub, y/Add) axis=-1", "y = Reshape(y/Concat, [2 3 2])"}},
		{"Gelu with a bias", 12, foreigner("com.microsoft", "BiasGelu", "x b"), nil, []string{
			"y/Add = Add(x, b)", "y/Div = Div(y/Add, [1.4142135])", "y/Erf = Erf(y/Div)",
			"y/Add_1 = Add(y/Erf, [1])", "y/Mul = Mul(y/Add, y/Add_1)", "y = Mul(y/Mul, [0.5])"}},
		{"SiLU", 12, foreigner("com.microsoft", "QuickGelu", "x", attr("alpha", float32(1))), nil,
			[]string{"y/Sigmoid = Sigmoid(x)", "y = Mul(x, y/Sigmoid)"}},
		{"a sum in a convolution", 12, foreigner("com.microsoft", "FusedConv", "x w  z",
			attr("activation", "Relu"), attr("group", 2)), nil, []string{
			"y/Conv = Conv(x, w) group=2", "y/Add = Add(y/Conv, z)", "y = Relu(y/Add)"}},
		{"a product of transposed factors", 12,
			foreigner("com.microsoft", "FusedMatMul", "x x", attr("transA", 1), attr("transBatchA", 1),
				attr("transB", 1), attr("alpha", float32(2))), nil, []string{
				"y/Transpose = Transpose(x) perm=[1 2 3 0]", "y/Transpose_1 = Transpose(x) perm=[0 1 3 2]",
				"y/MatMul = MatMul(y/Transpose, y/Transpose_1)", "y = Mul(y/MatMul, [2])"}},
		{"weights of four bits", 12, foreigner("com.microsoft", "MatMulNBits", "s b f z", attr("K", 3),
			attr("N", 2), attr("block_size", 2)), []*onnxpb.TensorProto{
			bytes("b", 0x21, 0xf3, 0x54, 0xf6), onnx.FloatTensor("f", []float32{1, 10, 100, 1000},
				4), bytes("z", 0x10, 0x32)}, []string{
			"y = MatMul(s, [1 200 2 300 20 3000])"}},
		{"ReduceLogSum", 11, node("ReduceLogSum", "x", attr("axes", list64(2, 3)), attr("keepdims", 0)), nil,
			[]string{
				"y/ReduceSum = ReduceSum(x, [2 3]) keepdims=0", "y = Log(y/ReduceSum)"}},
		{"ReduceLogSum of all", 18, node("ReduceLogSum", "x"), nil,
			[]string{"y/ReduceSum = ReduceSum(x) keepdims=1", "y = Log(y/ReduceSum)"}},
		{"ReduceLogSum of nothing", 18, node("ReduceLogSum", "x", attr("noop_with_empty_axes", 1)), nil,
			[]string{"y = Log(x)"}},
		{"GlobalLpPool", 11, node("GlobalLpPool", "x", attr("p", 1)), nil,
			[]string{"y = ReduceL1(x) axes=[2 3]"}},
		{"a scaled image", 8, scaler, nil, []string{"y/Mul = Mul(x, [2])", "y = Add(y/Mul, [1 2 3])"}},
		{"MeanVarianceNormalization", 13, node("MeanVarianceNormalization", "x", attr("axes", list64(2, 3))),
			nil, []string{
				"y/ReduceMean = ReduceMean(x) axes=[2 3]", "y/Sub = Sub(x, y/ReduceMean)",
				"y/Mul = Mul(y/Sub, y/Sub)",
				"y/ReduceMean_1 = ReduceMean(y/Mul) axes=[2 3]", "y/Add = Add(y/ReduceMean_1, [1e-18])",
				"y/Sqrt = Sqrt(y/Add)", "y = Div(y/Sub, y/Sqrt)"}},
		{"Mish", 18, node("Mish", "x"), nil,
			[]string{"y/Softplus = Softplus(x)", "y/Tanh = Tanh(y/Softplus)", "y = Mul(x, y/Tanh)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := model(tt.opset, []*onnxpb.NodeProto{tt.node}, tt.weights...)
			if _, err := ToOpset(m, types); err != nil {
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

// TestToOpsetRefuses holds in which words nodes are refused that no opset-17 model can have.
func TestToOpsetRefuses(t *testing.T) {
	relu := node("LSTM", "s w r")
	relu.Attribute = []*onnxpb.AttributeProto{{Name: "activations", Type: onnxpb.AttributeProto_STRINGS,
		Strings: [][]byte{[]byte("Relu")}}}
	mean := foreigner("com.microsoft", "SkipLayerNormalization", "s s w")
	mean.Output = append(mean.Output, "mean")
	tests := []struct {
		name  string
		opset int
		node  *onnxpb.NodeProto
		want  string
	}{
		{"an ancient model", 6, node("Relu", "x"),
			"the model uses opset 6: the meaning of operators is known from 7 to 28"},
		{"a model of the future", 29, node("Relu", "x"), "the model uses opset 29"},
		{"a new operator", 23, node("DeformConv", "x"), `node DeformConv "n": opset 17 has no such operator`},
		{"a mask that is read", 10, onnx.NewNode("n", "Dropout", []string{"x"}, []string{"y", "mask"}),
			"its mask is read"},
		{"training", 14, node("BatchNormalization", "x a b c d", attr("training_mode", 1)),
			"it is written for training"},
		{"old training", 9, onnx.NewNode("n", "BatchNormalization", []string{"x"}, []string{"y", "m"}),
			"it is written for training"},
		{"single positions", 7, node("BatchNormalization", "x", attr("spatial", 0)), "of single positions"},
		{"axes from elsewhere", 18, node("ReduceMean", "x a"), `"a" isn't constant`},
		{"wrapping", 19, node("Pad", "x p", attr("mode", "wrap")), "can't pad in the mode wrap"},
		{"an axis too many", 18, node("Pad", "x p  p"), `"p" isn't constant`},
		{"dilation", 19, node("AveragePool", "x", attr("dilations", list64(2, 1))), "no dilated AveragePool"},
		{"pads that leave nothing", 17,
			node("AveragePool", "x", attr("kernel_shape", list64(2, 2)), attr("pads", list64(0, 0, -4, 0)),
				attr("count_include_pad", 1), attr("ceil_mode", 1), attr("strides",
					list64(3, 3))), "leave nothing of a window"},
		{"a kernel larger than what it's moved over", 19,
			node("AveragePool", "x", attr("kernel_shape", list64(9, 9)), attr("pads", list64(1, 1, 1, 1)),
				attr("count_include_pad", 1), attr("ceil_mode", 1)), "larger than the padded image"},
		{"a filtered crop", 18, node("Resize", "x  s", attr("antialias", 1), attr("mode", "linear"),
			attr("coordinate_transformation_mode", "tf_crop_and_resize")),
			"can't resize in the mode tf_crop_and_resize so"},
		{"a kept ratio of the nearest", 19, node("Resize", "x   s", attr("axes", list64(-1)),
			attr("keep_aspect_ratio_policy", "not_larger")), "can't resize to the nearest element so"},
		{"an unknown shape", 18, onnx.NewNode("n", "Split", []string{"z"}, []string{"y"},
			attr("num_outputs", 1)), `the shape of "z" isn't known`},
		{"scattering", 18, node("ScatterND", "x i u", attr("reduction", "max")), "can't scatter by max"},
		{"columns of an unknown image", 18, node("Col2Im", "s i b"), `"i" isn't constant`},
		{"a grid of points in space", 20, node("GridSample", "x x"),
			"only images are supported, of two axes"},
		{"keys of an earlier run", 23, node("Attention", "x x x  k v"),
			"reads keys and values of an earlier run"},
		{"attention handed on", 23,
			onnx.NewNode("n", "Attention", []string{"x", "x", "x"}, []string{"y", "k"}), "hands more on"},
		{"tokens without heads", 23, node("Attention", "s s s"), "2 elements aren't 0 heads"},
		{"keys that don't fit", 23, node("Attention", "x t x"), `the shape of "t" isn't known`},
		{"turned without heads", 23, node("RotaryEmbedding", "s c c"), "2 elements aren't 0 heads"},
		{"an odd element turned", 23, node("RotaryEmbedding", "x c c", attr("rotary_embedding_dim", 3)),
			"3 of 5 elements of a head can't be turned"},
		{"sequences of many lengths", 14, node("LSTM", "s w r  n"),
			"its sequences have lengths of their own"},
		{"a clipped cell", 14, node("LSTM", "s w r", attr("clip", float32(3))),
			"attributes clip and layout aren't supported"},
		{"batches first", 14, node("LSTM", "s w r", attr("layout", 1)),
			"attributes clip and layout aren't supported"},
		{"other activations", 14, relu,
			"it has the activations [Relu], and only [Sigmoid Tanh Tanh] are supported"},
		{"an unknown way", 14, node("LSTM", "s w r", attr("direction", "up")),
			`the direction "up", which isn't known`},
		{"weights from elsewhere", 14, node("LSTM", "s w r"), `"w" isn't constant`},
		{"an image for a sequence", 14, node("LSTM", "x w r"), "its input has the shape [2 3 4 5]"},
		{"a sequence that no memory holds", 14, node("LSTM", "huge w r"),
			`"huge" has the impossible shape [2 2 4611686018427387904]`},
		{"more tokens than can be put in an order", 23, node("Attention", "long long long",
			attr("is_causal", 1)), "a constant of 16384 times 16384 numbers takes too much memory"},
		{"groups without a kernel", 23, node("GroupNormalization", "x s s"), "opset 17 has no such operator"},
		{"a quantised sum", 17, foreigner("com.microsoft", "QLinearAdd", "x"),
			`node QLinearAdd "n": activations are rounded to integers, so the derivative is 0`},
		{"a processor's own order", 17, foreigner("com.microsoft.nchwc", "Conv", "x"),
			"ONNX Runtime laid it out for one processor"},
		{"a fusion of its own", 17, foreigner("com.microsoft", "FusedConv", "x w",
			attr("activation", "Swish")), `its activation "Swish" with the parameters [] isn't known`},
		{"a clip without bounds", 17, foreigner("com.microsoft", "FusedConv", "x w",
			attr("activation", "Clip")), `its activation "Clip"`},
		{"tokens that are masked", 17, foreigner("com.microsoft", "Attention", "s w  m",
			attr("num_heads", 1)), "it has a mask of tokens"},
		{"attention of an image", 17, foreigner("com.microsoft", "Attention", "x x", attr("num_heads", 1)),
			"its input has the shape [2 3 4 5], its weights [2 3 4 5]"},
		{"queries alone", 17, foreigner("com.microsoft", "MultiHeadAttention", "s s", attr("num_heads", 1)),
			`the shape of "" isn't known`},
		{"a mean that is read", 17, mean, "it hands its mean"},
		{"few weights of few bits", 17, foreigner("com.microsoft", "MatMulNBits", "s b f", attr("K", 2),
			attr("N", 3), attr("block_size", 16)), "6 scales and 3 bytes don't make 3 rows"},
		{"weights of odd bits", 17, foreigner("com.microsoft", "MatMulNBits", "s b f", attr("K", 2),
			attr("N", 3), attr("block_size", 16), attr("bits", 3)), "of 3 bits each, aren't known"},
		{"a part of nothing known", 17, node("SequenceAt", "q i"),
			`the elements of the sequence "q" aren't known`},
		{"a norm of cubes", 17, node("GlobalLpPool", "x", attr("p", 3)),
			"its p is 3, and only 1 and 2 are supported"},
		{"nothing to cut", 17, node("SplitToSequence", "none"), "parts of 1 can't be cut out of 0"},
		{"no sizes", 17, node("SplitToSequence", "x empty"), `"empty" says no sizes of parts`},
		{"parts of nothing", 17, node("SplitToSequence", "x zero"), "parts of 0 can't be cut out of 2"},
		{"an axis that isn't there", 17, node("SplitToSequence", "x", attr("axis", 4)),
			"[2 3 4 5] has no axis 4"},
		{"a node without inputs", 10, &onnxpb.NodeProto{OpType: "Clip", Output: []string{"y"}},
			"it has no input"},
	}
	for _, tt := range tests {
		weights := []*onnxpb.TensorProto{ints("b", 1, 2, 3), onnx.FloatTensor("f", make([]float32, 6), 6),
			onnx.IntTensor("zero", []int64{0}), ints("empty")}
		_, err := ToOpset(model(tt.opset, []*onnxpb.NodeProto{tt.node}, weights...), types)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// foreigner returns a node of another domain.
func foreigner(domain, op, in string, attrs ...onnx.Attr) *onnxpb.NodeProto {
	n := node(op, in, attrs...)
	n.Domain = domain
	return n
}

// TestGroupNormalizationAhead holds what stands for a normalisation of groups, and that one is left whose
// channels nobody knows.
func TestGroupNormalizationAhead(t *testing.T) {
	normalise := node("GroupNormalization", "x a b", attr("num_groups", 2))
	scale := []*onnxpb.TensorProto{onnx.FloatTensor("a", []float32{1, 2, 3, 4}, 4),
		onnx.FloatTensor("b", []float32{5, 6, 7, 8}, 4)}
	tests := []struct {
		name    string
		opset   int
		weights []*onnxpb.TensorProto
		want    []string
	}{
		{"a scale a group", 18, nil, []string{
			"y/Reshape = Reshape(x, [0 2 -1])",
			"y/InstanceNormalization = InstanceNormalization(y/Reshape, a, b) epsilon", "y/Shape = Shape(x)",
			"y = Reshape(y/InstanceNormalization, y/Shape)"}},
		{"a scale a channel", 21, scale, []string{
			"y/Reshape = Reshape(x, [0 2 -1])",
			"y/InstanceNormalization = InstanceNormalization(y/Reshape, [1 1], [0 0]) epsilon",
			"y/Reshape_1 = Reshape(y/InstanceNormalization, [0 4 -1])",
			"y/Reshape_2 = Reshape([1 2 3 4], [-1 1])", "y/Mul = Mul(y/Reshape_1, y/Reshape_2)",
			"y/Reshape_3 = Reshape([5 6 7 8], [-1 1])", "y/Add = Add(y/Mul, y/Reshape_3)",
			"y/Shape = Shape(x)", "y = Reshape(y/Add, y/Shape)"}},
		{"of unknown channels", 21, nil, []string{"y = GroupNormalization(x, a, b) num_groups=2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := model(tt.opset, []*onnxpb.NodeProto{normalise}, tt.weights...)
			GroupNormalization(m)
			if d := cmp.Diff(tt.want, text(t, m)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestToOpsetNamesAll holds that every node in the way is named.
func TestToOpsetNamesAll(t *testing.T) {
	foreign := node("Fused", "x")
	foreign.Domain, foreign.Name = "com.example", "first"
	second := onnx.NewNode("second", "DeformConv", []string{"x"}, []string{"z"})
	third := foreigner("com.example", "Other", "x")
	_, err := ToOpset(model(18, []*onnxpb.NodeProto{foreign, node("Relu", "x"), second, third}), nil)
	want := `the model can't be written in ONNX's operators of opset 17: node Fused "first", Other "n": ` +
		`its operator is of com.example, not one of ONNX's own; node DeformConv "second": opset 17 has no ` +
		`such operator`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestToOpsetInside holds that graphs inside nodes are converted too.
func TestToOpsetInside(t *testing.T) {
	inner := &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node("Squeeze", "x", attr("axes", list64(0)))}}
	loop := node("If", "x")
	loop.Attribute = []*onnxpb.AttributeProto{{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH,
		G: inner}}
	m := model(12, []*onnxpb.NodeProto{loop})
	if _, err := ToOpset(m, nil); err != nil {
		t.Fatal(err)
	}
	if n := inner.Node[0]; len(n.Input) != 2 || len(n.Attribute) != 0 || len(m.Proto.Graph.Initializer) != 1 {
		t.Errorf("%v", n)
	}
}

// TestPassesDontOverlap holds that at most one pass matches a node.
func TestPassesDontOverlap(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range converters() {
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
