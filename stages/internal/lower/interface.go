package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// newestIR is the newest version of ONNX's file format that the runtime reads. Graphs use no later
// features.
const newestIR = 10

// modelInterface fixes the shape of the model's input to that of the batch, and removes the nodes that no
// output needs: the explained ones, or all.
func (u *unit) modelInterface() error {
	in := onnx.Value{Name: u.Input, Elem: onnxpb.TensorProto_FLOAT, Shape: u.inputShape(), Known: true}
	var outputs []onnx.Value
	for _, name := range u.Answers() {
		outputs = append(outputs, onnx.Value{Name: name, Elem: onnxpb.TensorProto_FLOAT})
	}
	for _, v := range u.model.Outputs() {
		if u.all && !slices.Contains(u.Answers(), v.Name) {
			outputs = append(outputs, onnx.Value{Name: v.Name, Elem: v.Elem})
		}
	}
	u.restrict([]onnx.Value{in}, outputs)
	u.opset = u.model.Opset()
	u.model.Proto.IrVersion = min(u.model.Proto.IrVersion, newestIR)
	return nil
}

// declareInputs declares the program's inputs.
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

// seal makes the declared inputs the model's inputs, and the answer and the outputs of the signature its
// outputs. Nodes that no output needs are removed.
func (u *unit) seal() error {
	outputs := []onnx.Value{{Name: Answer, Elem: onnxpb.TensorProto_FLOAT}}
	for _, v := range u.signature.Outputs {
		outputs = append(outputs, onnx.Value{Name: v.Value(), Elem: onnxpb.TensorProto_FLOAT})
	}
	u.restrict(u.inputs, outputs)
	return nil
}

// restrict sets the model's inputs and outputs, and removes the nodes that no output needs.
func (u *unit) restrict(inputs, outputs []onnx.Value) {
	m := u.current()
	m.SetInputs(inputs...)
	m.SetOutputs(outputs...)
	m.ForgetShapes()
	m.Prune()
}
