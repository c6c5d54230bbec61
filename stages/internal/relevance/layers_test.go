package relevance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// sketch parses a graph from lines such as "y = Conv(x, w) 2,8,4,4". The input is x, the output is that of
// the last line. Undefined names are weights.
func sketch(t *testing.T, text string) *onnx.Graph {
	t.Helper()
	types := map[string]onnx.Type{"x": {Elem: onnxpb.TensorProto_FLOAT, Shape: []int{2, 3, 16, 16}}}
	p := &onnxpb.GraphProto{}
	weights := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		out, rest, _ := strings.Cut(strings.TrimSpace(line), " = ")
		op, rest, _ := strings.Cut(rest, "(")
		in, shape, _ := strings.Cut(rest, ") ")
		var s []int
		for d := range strings.SplitSeq(shape, ",") {
			var n int
			if _, err := fmt.Sscan(d, &n); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			s = append(s, n)
		}
		inputs := strings.Split(in, ", ")
		for _, v := range inputs {
			if _, made := types[v]; !made && !weights[v] {
				weights[v] = true
				p.Initializer = append(p.Initializer, onnx.FloatTensor(v, []float32{1}, 1))
			}
		}
		outputs := strings.Split(out, ", ")
		for _, o := range outputs {
			types[o] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: s}
		}
		p.Node = append(p.Node, onnx.NewNode(out, op, inputs, outputs))
		p.Output = []*onnxpb.ValueInfoProto{{Name: outputs[0]}}
	}
	p.Input = []*onnxpb.ValueInfoProto{{Name: "x"}}
	g, err := onnx.NewGraph(&onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, Graph: p}}, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLayers(t *testing.T) {
	vgg := ""
	last := "x"
	for i, pool := range []bool{true, true, false, true, false, true, false, true} { // VGG-11
		vgg += fmt.Sprintf("c%d = Conv(%s, w) 2,8,4,4\nrelu%d = Relu(c%d) 2,8,4,4\n", i+1, last, i+1, i+1)
		last = fmt.Sprintf("relu%d", i+1)
		if pool {
			vgg += fmt.Sprintf("p%d = MaxPool(%s) 2,8,4,4\n", i+1, last)
			last = fmt.Sprintf("p%d", i+1)
		}
	}
	vgg += "f = Flatten(" + last + ") 2,128\nfc = Gemm(f, w) 2,10\nr = Relu(fc) 2,10\ny = Gemm(r, w) 2,10\n"

	resnet := "c = Conv(x, w) 2,8,8,8\nstem = Relu(c) 2,8,8,8\nh0 = MaxPool(stem) 2,8,4,4\n"
	last = "h0"
	for i := range 8 { // ResNet-18: four layers of two blocks
		resnet += strings.NewReplacer("#", fmt.Sprint(i), "@", last).Replace(
			"a# = Conv(@, w) 2,8,4,4\nb# = Relu(a#) 2,8,4,4\nc# = Conv(b#, w) 2,8,4,4\nd# = Add(c#, @) " +
				"2,8,4,4\nblock# = Relu(d#) 2,8,4,4\n")
		last = fmt.Sprintf("block%d", i)
	}
	resnet += "g = GlobalAveragePool(block7) 2,8,1,1\nf = Flatten(g) 2,8\ny = Gemm(f, w) 2,10\n"

	vit := "e = Conv(x, w) 2,6,4,4\nr = Reshape(e, s) 2,6,16\nt = Transpose(r) 2,16,6\nz = Concat(t, " +
		"token) 2,17,6\nb0 = Add(z, w) 2,17,6\n"
	for i := range 3 {
		vit += strings.NewReplacer("#", fmt.Sprint(i), "@", fmt.Sprintf("b%d", i), "+",
			fmt.Sprint(i+1)).Replace(
			"n# = LayerNormalization(@, w, w) 2,17,6\nq# = MatMul(n#, w) 2,17,6\nk# = MatMul(n#, w) " +
				"2,6,17\nl# = MatMul(q#, k#) 2,17,17\n" +
				"s# = Softmax(l#) 2,17,17\no# = MatMul(s#, n#) 2,17,6\na# = Add(o#, @) 2,17,6\nm# = " +
				"MatMul(a#, w) 2,17,6\nu# = Relu(m#) 2,17,6\nb+ = Add(u#, a#) 2,17,6\n")
	}
	token := vit + "n = LayerNormalization(b3, w, w) 2,17,6\nc = Gather(n, i) 2,6\ny = Gemm(c, w) 2,10\n"
	mean := vit + "n = LayerNormalization(b3, w, w) 2,17,6\nc = ReduceMean(n) 2,6\ny = Gemm(c, w) 2,10\n"

	for _, tt := range []struct{ name, text, middle, final string }{
		{"VGG-11", vgg, "relu5", "relu8"},
		{"ResNet-18", resnet, "block3", "block7"},
		{"a class token", token, "a1", "b2"},
		{"a mean over tokens", mean, "b2", "b3"},
		{"fire modules end with their concatenation", `
			a = Conv(x, w) 2,4,8,8
			b = Relu(a) 2,4,8,8
			c = Conv(b, w) 2,4,8,8
			d = Relu(c) 2,4,8,8
			e = Conv(b, w) 2,4,8,8
			f = Relu(e) 2,4,8,8
			fire = Concat(d, f) 2,8,8,8
			g = GlobalAveragePool(fire) 2,8,1,1
			y = Flatten(g) 2,8`, "fire", "fire"},
		{"a gated activation is one", `
			a = Conv(x, w) 2,4,8,8
			s = Sigmoid(a) 2,4,8,8
			swish = Mul(a, s) 2,4,8,8
			g = GlobalAveragePool(swish) 2,4,1,1
			y = Flatten(g) 2,4`, "swish", "swish"},
		{"linear bottlenecks are part of the list", `
			a = Conv(x, w) 2,4,8,8
			six = Clip(a, lo, hi) 2,4,8,8
			b = Conv(six, w) 2,4,8,8
			s = Add(b, six) 2,4,8,8
			c = Conv(s, w) 2,4,8,8
			end = Clip(c, lo, hi) 2,4,8,8
			g = GlobalAveragePool(end) 2,4,1,1
			y = Flatten(g) 2,4`, "s", "end"},
		{"what can be gone around is no layer", `
			a = Conv(x, w) 2,3,16,16
			b = Relu(a) 2,3,16,16
			c = Concat(b, x) 2,6,16,16
			g = GlobalAveragePool(c) 2,6,1,1
			y = Flatten(g) 2,6`, "", ""},
		{"shapes that are asked for are no way around", `
			a = Conv(x, w) 2,4,8,8
			b = Relu(a) 2,4,8,8
			s = Shape(x) 4
			c = Reshape(b, s) 2,256
			y = Gemm(c, w) 2,10`, "b", "b"},
		{"no places", `
			f = Flatten(x) 2,768
			h = Gemm(f, w) 2,10
			r = Relu(h) 2,10
			y = Gemm(r, w) 2,10`, "", ""},
		{"blocks of tokens are no grid", `
			a = Conv(x, w) 2,6,8,8
			b = Relu(a) 2,6,8,8
			c = Reshape(b, s) 2,4,16,6
			d = LayerNormalization(c, w, w) 2,4,16,6
			e = Add(d, c) 2,4,16,6
			f = ReduceMean(e) 2,6
			y = Gemm(f, w) 2,10`, "b", "b"},
		{"strides that shorten one axis", `
			a = Conv(x, w) 2,6,8,16
			b = Relu(a) 2,6,8,16
			c = Conv(b, w) 2,6,4,16
			d = Relu(c) 2,6,4,16
			e = Conv(d, w) 2,6,1,16
			f = Relu(e) 2,6,1,16
			h = GlobalAveragePool(f) 2,6,1,1
			y = Flatten(h) 2,6`, "d", "f"},
		{"windows of an image that strides shortened", `
			a = Conv(x, w) 2,6,4,16
			b = Relu(a) 2,6,4,16
			c = Transpose(b) 2,4,16,6
			d = Reshape(c, s) 2,4,16,6
			e = Reshape(d, s) 2,4,16,6
			f = LayerNormalization(e, w, w) 2,4,16,6
			h = Add(e, f) 2,4,16,6
			i = ReduceMean(h) 2,6
			y = Gemm(i, w) 2,10`, "h", "h"},
		{"two outputs that both count", `
			a = Conv(x, w) 2,4,8,8
			h, k = Split(a) 2,2,8,8
			m = Mul(h, k) 2,2,8,8
			g = GlobalAveragePool(m) 2,2,1,1
			y = Flatten(g) 2,2`, "m", "m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			middle, final := Layers(sketch(t, tt.text))
			if middle != tt.middle || final != tt.final {
				t.Errorf("middle %q and final %q, want %q and %q", middle, final, tt.middle, tt.final)
			}
		})
	}
}
