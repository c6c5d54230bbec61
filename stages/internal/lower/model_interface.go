package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// newestIR is the newest version of ONNX's file format that the runtime reads. Graphs use nothing that later
// ones added.
const newestIR = 10

// modelInterface fixes the shape of the model's input to that of the batch, and drops what its output doesn't
// need.
func (u *unit) modelInterface() error {
	in := onnx.Value{Name: u.Input, Elem: onnxpb.TensorProto_FLOAT, Shape: u.inputShape(), Known: true}
	u.restrict([]onnx.Value{in}, []onnx.Value{{Name: u.Output, Elem: onnxpb.TensorProto_FLOAT}})
	u.opset = u.model.Opset()
	u.model.Proto.IrVersion = min(u.model.Proto.IrVersion, newestIR)
	return nil
}
