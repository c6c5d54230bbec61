package model_test

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// sideWeights are those of the three logits: of four features, and of three numbers of the input side.
func sideWeights() (features, side *onnxpb.TensorProto) {
	return modeltest.Noise("features", 3, 4, 3), modeltest.Noise("side.weight", 5, 3, 3)
}

// withSide returns the file of a net whose logits are linear in an image's features and in the input side.
// That input is joined with the features, as Concat does without broadcasting, unless all images share it.
func withSide(t *testing.T, batch int, elem onnxpb.TensorProto_DataType, shape ...int) string {
	t.Helper()
	g := newGraph()
	pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{g.features(4)})})
	side := "side"
	if elem != float {
		side = g.op("Cast", []string{side}, onnx.Attr{Name: "to", Value: int(float)})
	}
	a, b := sideWeights()
	g.Initializer = append(g.Initializer, a, b)
	if shape[0] == 1 {
		g.named(g.op("Add", []string{g.op("MatMul", []string{pooled, a.Name}),
			g.op("MatMul", []string{side, b.Name})}), "logits")
	} else {
		weights := g.op("Concat", []string{a.Name, b.Name}, onnx.Attr{Name: "axis", Value: 0})
		joined := g.op("Concat", []string{pooled, side}, onnx.Attr{Name: "axis", Value: 1})
		g.named(g.op("MatMul", []string{joined, weights}), "logits")
	}
	return g.file(t, batch, value("image", float, batch, 3, 32, 32), value("side", elem, shape...))
}

// withoutSide returns the file of the same net for three numbers of the input, whose part of the logits is a
// bias.
func withoutSide(t *testing.T, batch int, numbers []float32) string {
	t.Helper()
	g := newGraph()
	pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{g.features(4)})})
	a, b := sideWeights()
	weights, err := onnx.Float32s(b)
	if err != nil {
		t.Fatal(err)
	}
	bias := make([]float32, 3)
	for k := range bias {
		for i, v := range numbers {
			bias[k] += v * weights[3*i+k]
		}
	}
	g.Initializer = append(g.Initializer, a, onnx.FloatTensor("bias", bias, 3))
	g.named(g.op("Gemm", []string{pooled, a.Name, "bias"}), "logits")
	return g.file(t, batch, value("image", float, batch, 3, 32, 32))
}

// TestConstants holds that a model whose second input is held constant answers as the model with the bias
// that these numbers make, in any batch.
func TestConstants(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		name, constant string
		batch          int
		elem           onnxpb.TensorProto_DataType
		shape          []int
		numbers        []float32
	}{
		{"a row an image", "side=0.5,-1.5, 2", -1, float, []int{-1, 3}, []float32{0.5, -1.5, 2}},
		{"one number for all", "side=0.25", -1, float, []int{-1, 3}, []float32{0.25, 0.25, 0.25}},
		{"integers", "side = 7, -2, 3", -1, onnxpb.TensorProto_INT64, []int{-1, 3}, []float32{7, -2, 3}},
		{"truth", "side=1,0,1", -1, truth, []int{-1, 3}, []float32{1, 0, 1}},
		{"of a fixed batch", "side=1e-1,2,3", 2, float, []int{2, 3}, []float32{0.1, 2, 3}},
		{"the same for all images", "side=0.5,-1.5,2", -1, float, []int{1, 3}, []float32{0.5, -1.5, 2}},
		{"as many as are given", "side=0.5,-1.5,2", -1, float, []int{1, -1}, []float32{0.5, -1.5, 2}},
	} {
		p := model.ONNXParams{Constants: []string{tt.constant},
			Path: withSide(t, tt.batch, tt.elem, tt.shape...)}
		x, err := model.Inspect(t.Context(), defaults(p))
		if err != nil || x.Problem != "" || x.Gradient != "" || len(x.Inputs) != 2 {
			t.Fatalf("%s: %v, problem %q, gradient %q, inputs %v", tt.name, err, x.Problem, x.Gradient,
				x.Inputs)
		}
		x.Trial.Close()
		d := modeltest.Model(t, p)
		twin := modeltest.Model(t, model.ONNXParams{Path: withoutSide(t, tt.batch, tt.numbers)})
		if s := modeltest.Spec(t, d); s.Classes != 3 || s.Batch != max(0, tt.batch) {
			t.Errorf("%s: %d classes, batch %d", tt.name, s.Classes, s.Batch)
		}
		class, got := predict(t, d)
		same, want := predict(t, twin)
		if class != same || !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%s: class %v with %v, want %v with %v", tt.name, class, got, same, want)
		}
	}
}

// TestConstantsRefused holds the errors of the parameter constants.
func TestConstantsRefused(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		constants []string
		shape     []int
		elem      onnxpb.TensorProto_DataType
		want      string
	}{
		{nil, []int{-1, 3}, float, `such as constants: ["side=0"]`},
		{[]string{"side"}, []int{-1, 3}, float, `"side" isn't an input and its numbers`},
		{[]string{"side=a"}, []int{-1, 3}, float, `"a" is no number`},
		{[]string{"side=1", "side=2"}, []int{-1, 3}, float, `input "side" is given twice`},
		{[]string{"sides=1"}, []int{-1, 3}, float, `no input "sides"; it has image, side`},
		{[]string{"side=1,2"}, []int{-1, 3}, float, "2 numbers are given, and it has 3"},
		{[]string{"side=1"}, []int{1, -1, -1}, float, "more than one dimension open"},
		{[]string{"side=1.5"}, []int{-1, 3}, onnxpb.TensorProto_INT64, "1.5 is no integer"},
		{[]string{"side=1"}, []int{1, 1 << 13, 1 << 13}, float, "the maximum is 16777216"},
	} {
		p := defaults(model.ONNXParams{Path: withSide(t, -1, tt.elem, tt.shape...), Constants: tt.constants})
		err := p.Validate()
		if err == nil {
			_, err = stagetest.Try(model.ONNX, &p, nil)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want one with %q", tt.constants, err, tt.want)
		}
	}
}
