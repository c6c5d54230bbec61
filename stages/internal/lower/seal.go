package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// seal has the model take the declared inputs and return the answer and the outputs of the signature, and
// nothing else. Nodes that none of these needs are gone.
func (u *unit) seal() error {
	outputs := []onnx.Value{{Name: Answer, Elem: onnxpb.TensorProto_FLOAT}}
	for _, v := range u.signature.Outputs {
		outputs = append(outputs, onnx.Value{Name: v.Value(), Elem: onnxpb.TensorProto_FLOAT})
	}
	u.restrict(u.inputs, outputs)
	return nil
}

// restrict has the model take inputs and return outputs, and drops what these don't need.
func (u *unit) restrict(inputs, outputs []onnx.Value) {
	m := u.current()
	m.SetInputs(inputs...)
	m.SetOutputs(outputs...)
	m.ForgetShapes()
	m.Prune()
}
