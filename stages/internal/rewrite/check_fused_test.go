package rewrite

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestFused holds that nodes of ONNX Runtime's own operators which its kernels don't survive are refused by
// name, and that others are not.
func TestFused(t *testing.T) {
	fused := func(op, in string, attrs ...onnx.Attr) *onnxpb.NodeProto {
		return foreigner("com.microsoft", op, in, attrs...)
	}
	heads := func(n int) onnx.Attr { return attr("num_heads", n) }
	weights := []*onnxpb.TensorProto{
		onnx.FloatTensor("w", make([]float32, 24), 2, 12), onnx.FloatTensor("b", make([]float32, 12),
			12), onnx.FloatTensor("scalar", []float32{1}),
		onnx.FloatTensor("kernel", make([]float32, 3), 1, 3, 1), onnx.FloatTensor("none", nil, 0,
			4), onnx.FloatTensor("empty", nil, 4, 4, 0),
	}
	tests := []struct {
		name string
		node *onnxpb.NodeProto
		want string // "" where nothing is refused
	}{
		{"attention", fused("Attention", "x w b", heads(2)), ""},
		{"attention of a mask", fused("Attention", "x w b x", heads(2)), ""},
		{"attention of uneven sizes",
			fused("Attention", "x w b", heads(2), attr("qkv_hidden_sizes", list64(4, 4, 2))), ""},
		{"attention whose weights are made", fused("Attention", "x x x", heads(2)), ""},
		{"ONNX's own attention", node("Attention", "x x x"), ""},
		{"no weights", fused("Attention", "x b   x", heads(2)),
			`node Attention "n": its input 2 is missing, and it needs 3`},
		{"no bias", fused("Attention", "x w", heads(2)), `node Attention "n": its input 2 is missing`},
		{"weights that are a bias", fused("Attention", "x b b", heads(2)),
			`node Attention "n": its weights have the shape [12], and need 2 dimensions`},
		{"weights of one number", fused("Attention", "x scalar b", heads(2)),
			`its weights have the shape []`},
		{"no heads", fused("Attention", "x w b"),
			`node Attention "n": its num_heads is 0, and 1 to 65536 are possible`},
		{"heads that are 0 in 32 bits", fused("Attention", "x w b", heads(1<<32)),
			"its num_heads is 4294967296"},
		{"heads that don't divide", fused("Attention", "x w b", heads(3)),
			`node Attention "n": elements of the sizes [4] aren't 3 heads`},
		{"heads that don't divide the values", fused("Attention", "x w b", heads(4),
			attr("qkv_hidden_sizes", list64(4, 4, 2))), "elements of the sizes [4 4 2] aren't 4 heads"},
		{"a size below 1", fused("Attention", "x w b", heads(2), attr("qkv_hidden_sizes", list64(4, 4, -4))),
			"elements of the sizes [4 4 -4] aren't 2 heads"},
		{"keys of an earlier run", fused("Attention", "x w b  x", heads(2)),
			`node Attention "n" keeps keys and values from one run to the next`},
		{"queries, keys and values", fused("MultiHeadAttention", "x x x b", heads(4)), ""},
		{"queries of no heads", fused("MultiHeadAttention", "x x x b"),
			`node MultiHeadAttention "n": its num_heads is 0`},
		{"queries of many heads", fused("MultiHeadAttention", "x x x", heads(1<<40)),
			"its num_heads is 1099511627776"},
		{"queries and values of an earlier run", fused("MultiHeadAttention", "x x x b    scalar", heads(4)),
			`node MultiHeadAttention "n" keeps keys and values`},
		{"a normalised sum", fused("SkipLayerNormalization", "x w b b b"), ""},
		{"a sum with nothing", fused("SkipLayerNormalization", "x none b"),
			`node SkipLayerNormalization "n": its input 1 has the shape [0 4], and needs a dimension and ` +
				`an element`},
		{"a sum with a scalar", fused("SkipSimplifiedLayerNormalization", "scalar x b"),
			`node SkipSimplifiedLayerNormalization "n": its input 0 has the shape []`},
		{"a sum without a scale", fused("SkipLayerNormalization", "x w"),
			`node SkipLayerNormalization "n": its input 2 is missing`},
		{"a convolution", fused("FusedConv", "x kernel"), ""},
		{"a convolution's weights of two dimensions", fused("FusedConv", "x w"),
			`node FusedConv "n": its weights have 2 dimensions`},
		{"a convolution by nothing", node("Conv", "x empty"),
			`node Conv "n": its weights have the shape [4 4 0], which has no elements`},
		{"weights of few bits without scales", fused("MatMulNBits", "x w"),
			`node MatMulNBits "n": its input 2 is missing`},
		{"an operator that nobody knows", fused("Other", "x"), ""},
	}
	for _, tt := range tests {
		err := TopologicalOrder(model(17, []*onnxpb.NodeProto{tt.node}, weights...))
		if tt.want == "" && err != nil || tt.want != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}
