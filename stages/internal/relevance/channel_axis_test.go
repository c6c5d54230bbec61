package relevance

import (
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

func TestChannelAxis(t *testing.T) {
	for _, tt := range []struct {
		name, text, of string
		want           int
	}{
		{"a Conv makes feature maps", "v = Conv(x, w) 2,8,4,4\ny = Relu(v) 2,8,4,4", "v", 1},
		{"a Conv reads them", "v = Relu(x) 2,3,16,16\ny = Conv(v, w) 2,8,4,4", "v", 1},
		{"a residual stream of Swin", `
			a = Conv(x, w) 2,8,4,4
			b = Transpose(a) 2,4,4,8
			c = LayerNormalization(b, w, w) 2,4,4,8
			d = Relu(c) 2,4,4,8
			v = Add(d, b) 2,4,4,8
			y = LayerNormalization(v, w, w) 2,4,4,8`, "v", 3},
		{"tokens", "v = Reshape(x, s) 2,16,48\ny = LayerNormalization(v, w, w) 2,16,48", "v", 2},
		{"through a Transpose",
			"v = Relu(x) 2,3,16,16\nt = Transpose(v) 2,16,16,3\ny = LayerNormalization(t, w, w) 2,16,16,3",
			"v", 1},
		{"through a Transpose, backwards",
			"a = Conv(x, w) 2,8,4,4\nb = Transpose(a) 2,4,4,8\nv = Relu(b) 2,4,4,8", "v", 3},
		{"the nearest counts", `
			v = Relu(x) 2,3,16,16
			a = LayerNormalization(v, w, w) 2,3,16,16
			b = Relu(a) 2,3,16,16
			y = Conv(b, w) 2,8,4,4`, "v", 3},
		{"behind a linear layer on feature maps, channels last", `
			a = Reshape(x, s) 512,3
			b = Gemm(a, w, w) 512,24
			c = Reshape(b, s) 2,16,16,24
			d = Erf(c) 2,16,16,24
			v = Mul(d, c) 2,16,16,24`, "v", 3},
		{"before one",
			"v = Relu(x) 2,16,4,24\na = Exp(v) 2,16,4,24\nb = Reshape(a, s) 128,24\ny = Gemm(b, w, w) 128,8",
			"v", 3},
		{"before one, through a Transpose",
			"v = Relu(x) 2,24,256\nt = Transpose(v) 2,256,24\nb = Reshape(t, s) 512,24\ny = MatMul(b, w) " +
				"512,8", "v", 1},
		{"a Reshape that doesn't keep the last axis",
			"v = Relu(x) 2,8,4,4\nb = Reshape(v, s) 2,128\ny = Gemm(b, w, w) 2,8", "v", 1},
		{"a Reshape for something else", "v = Relu(x) 2,8,4,4\nb = Reshape(v, s) 64,4\ny = Softmax(b) 64,4",
			"v", 1},
		{"a linear layer that mixes tokens", `
			a = Reshape(x, s) 96,16
			b = Gemm(a, w, w) 96,16
			v = Reshape(b, s) 2,48,16
			c = Transpose(v) 2,16,48
			d = Add(c, c) 2,16,48
			y = LayerNormalization(d, w, w) 2,16,48`, "v", 1},
		{"channels first where nobody says it", "v = Relu(x) 2,3,16,16\ny = Exp(v) 2,3,16,16", "v", 1},
		{"tokens first where nobody says it", "v = Reshape(x, s) 2,16,48\ny = Exp(v) 2,16,48", "v", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := sketch(t, tt.text)
			for _, n := range g.Proto.Graph.Node {
				if n.OpType == "Transpose" { // sketches have no attributes
					n.Attribute = ints("perm", 0, 2, 3, 1)
					if len(g.Shape(n.Output[0])) == 3 {
						n.Attribute = ints("perm", 0, 2, 1)
					}
				}
			}
			if got := ChannelAxis(g, tt.of); got != tt.want {
				t.Errorf("axis %d, want %d", got, tt.want)
			}
		})
	}
}

func TestTokenGrid(t *testing.T) {
	for tokens, want := range map[int][2]int{16: {4, 0}, 17: {4, 1}, 204: {14, 8}, 205: {0, 0}, 1: {0, 0},
		3: {0, 0}, 5: {2, 1}} {
		if side, others := TokenGrid(tokens); side != want[0] || others != want[1] {
			t.Errorf("%d tokens: side %d and %d others, want %v", tokens, side, others, want)
		}
	}
}

func ints(name string, v ...int64) []*onnxpb.AttributeProto {
	return onnx.NewNode("", "", nil, nil, onnx.Attr{Name: name, Value: v}).Attribute
}

// TestSureGrid holds that tokens are a grid where at most two stand before it or a value of the graph has its
// axes: a text of 32 tokens is none, patches behind 5 registers are.
func TestSureGrid(t *testing.T) {
	text := sketch(t, "v = Reshape(x, s) 2,32,48\ny = LayerNormalization(v, w, w) 2,32,48")
	image := sketch(t, "a = Conv(x, w) 2,8,5,5\nv = Reshape(a, s) 2,25,8\ny = LayerNormalization(v, w, w) "+
		"2,25,8")
	for tokens, want := range map[int][2]bool{25: {true, true}, 26: {true, true}, 27: {true, true},
		28: {false, true}, 32: {false, true}, 31: {false, true}, 12: {false, false}, 35: {false, false},
		3: {}} {
		if got := [2]bool{SureGrid(text, tokens), SureGrid(image, tokens)}; got != want {
			t.Errorf("%d tokens: %v, want %v", tokens, got, want)
		}
	}
}
