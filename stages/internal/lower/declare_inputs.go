package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// declareInputs declares what the program is fed.
func (u *unit) declareInputs() error { return u.declare(u.Inputs(u.shapes[0])) }

// declare adds inputs to the signature and the model.
func (u *unit) declare(inputs []IO) error {
	m := u.current()
	for _, v := range inputs {
		if m.Fresh(v.Value()) != v.Value() {
			return taken(v.Value())
		}
		u.inputs = append(u.inputs,
			onnx.Value{Name: v.Value(), Elem: onnxpb.TensorProto_FLOAT, Shape: v.Shape, Known: true})
		if u.graph != nil {
			u.graph.Types[v.Value()] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: v.Shape}
		}
	}
	u.signature.Inputs = append(u.signature.Inputs, inputs...)
	return nil
}
