package attribute

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// convolved returns a net of convolutions with strides, each followed by what is put behind it, of images of
// 16×64 pixels.
func convolved(t *testing.T, strides [][]int64,
	behind func(i int, x string) []*onnxpb.NodeProto) stages.Data {
	t.Helper()
	w := make([]float32, 3*3*9)
	for i := range w {
		w[i] = float32(i%5)/10 - 0.15
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{Name: "g", Initializer: []*onnxpb.TensorProto{onnx.FloatTensor("w", w, 3, 3,
			3, 3)}},
	}}
	g := m.Proto.Graph
	x := "x"
	for i, s := range strides {
		c := onnx.NewNode("", "Conv", []string{x, "w"}, []string{x + "c"},
			onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}}, onnx.Attr{Name: "strides", Value: s})
		g.Node = append(append(g.Node, c), behind(i, x+"c")...)
		x = g.Node[len(g.Node)-1].Output[0]
	}
	g.Node = append(g.Node, onnx.NewNode("", "GlobalAveragePool", []string{x}, []string{"m"}),
		onnx.NewNode("", "Flatten", []string{"m"}, []string{"logits"}))
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{onnx.Free, 3, 16, 64},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})
}

// TestFinalLayer checks that the final layer of a net whose strides shorten one axis is its last, and that
// one which most of the net comes behind is told of.
func TestFinalLayer(t *testing.T) {
	modeltest.Runtime(t)
	relu := func(_ int, x string) []*onnxpb.NodeProto {
		return []*onnxpb.NodeProto{onnx.NewNode("", "Relu", []string{x}, []string{x + "r"})}
	}
	first := func(i int, x string) []*onnxpb.NodeProto {
		if i > 0 {
			return nil
		}
		return relu(i, x)
	}
	for _, tt := range []struct {
		name    string
		strides [][]int64
		behind  func(i int, x string) []*onnxpb.NodeProto
		shape   []int
		warning string
	}{
		{"strides of one axis", [][]int64{{1, 1}, {2, 1}, {2, 1}, {2, 1}}, relu, []int{2, 64}, ""},
		{"one activation", [][]int64{{2, 2}, {2, 2}, {2, 2}, {1, 1}}, first, []int{8, 32},
			`layer final is "xcr", and 3 of the model's 4 convolutions come after it`},
	} {
		p := GradCAM.NewParams().(*GradCAMParams)
		p.Size = "layer"
		net := convolved(t, tt.strides, tt.behind)
		image := stages.NewTensor(make([]uint8, 3*16*64), 3, 16, 64).Encode()
		r := stagetest.Run(t, GradCAM, p, map[string][]stages.Data{
			"model": {net}, "images": {stagetest.Items(nil, image)}, "targets": {stagetest.Items(nil,
				stages.NewTensor([]int64{0}, 1).Encode())},
		})
		said := strings.Join(r.Warnings, "; ")
		m, err := stages.DecodeTensor(r.Payloads["maps"][0])
		if err != nil || m.Shape[0] != tt.shape[0] || m.Shape[1] != tt.shape[1] {
			t.Errorf("%s: a map of %v, want %v: %v", tt.name, m.Shape, tt.shape, err)
		}
		if (said != "") != (tt.warning != "") || !strings.Contains(said, tt.warning) {
			t.Errorf("%s: %q, want %q", tt.name, said, tt.warning)
		}
	}
}
