package rewrite

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A TextInput is one of a model's inputs of texts, [N, n], and the channel of a text that it takes.
type TextInput struct {
	onnx.Value
	Channel int
}

// TextInputs replaces a model's inputs of texts by one, float32 [N, channels, 1, n], whose channels it hands
// to the nodes that read them. It returns the new input, of the shape of the first.
func TextInputs(m *onnx.Model, channels int, of []TextInput) onnx.Value {
	first := of[0].Shape
	in := onnx.Value{Name: m.Fresh("texts"), Elem: onnxpb.TensorProto_FLOAT,
		Shape: []int{first[0], channels, 1, first[1]}, Known: true}
	f := m.Fragment()
	zero := f.Ints("row", []int64{0})
	for _, v := range of {
		channel := f.Op("Gather", []string{in.Name, f.Ints("channel", []int64{int64(v.Channel)})},
			onnx.Attr{Name: "axis", Value: 1})
		row := f.Op("Gather", []string{channel, zero}, onnx.Attr{Name: "axis", Value: 1})
		f.OpTo(v.Name, "Cast", []string{row}, onnx.Attr{Name: "to", Value: int(v.Elem)})
	}
	m.SetInputs(in)
	m.Before(f)
	m.ForgetShapes()
	return in
}

// TextsFirst rewrites a Gather of rows that returns [tokens, texts, n], so that it returns [texts, tokens,
// n], and exchanges the axes behind it. It returns the new output, "" if value isn't such a Gather's.
func TextsFirst(m *onnx.Model, value string) string {
	made := m.Producer(value)
	if made == nil || made.OpType != "Gather" || (onnx.Node{NodeProto: made}).Int("axis", 0) != 0 {
		return ""
	}
	f := m.Fragment()
	made.Input[1] = f.Op("Transpose", []string{made.Input[1]}, onnx.Attr{Name: "perm", Value: []int64{1, 0}})
	first := m.Fresh(value + ".texts_first")
	made.Output[0], made.Name = first, first
	f.OpTo(value, "Transpose", []string{first}, onnx.Attr{Name: "perm", Value: []int64{1, 0, 2}})
	m.After(f)
	return first
}
