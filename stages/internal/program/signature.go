package program

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// declare makes the feeds of a program known to its graph, and returns them as inputs.
func declare(g *onnx.Graph, feeds []feed) ([]onnx.Value, error) {
	inputs := make([]onnx.Value, len(feeds))
	for i, f := range feeds {
		inputs[i] = onnx.Value{Name: g.Fresh("runexp_" + f.name), Elem: onnxpb.TensorProto_FLOAT, Shape: f.shape, Known: true}
		if inputs[i].Name != "runexp_"+f.name {
			return nil, fmt.Errorf("the model already has a value called %q", "runexp_"+f.name)
		}
		g.Types[inputs[i].Name] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: f.shape}
	}
	return inputs, nil
}

// seal has a graph take inputs and return the answer and what the recipe says, and
// nothing else.
func seal(g *onnx.Graph, inputs []onnx.Value, r recipe) {
	g.SetInputs(inputs...)
	outputs := []onnx.Value{{Name: answer, Elem: onnxpb.TensorProto_FLOAT}}
	for _, f := range r.returns {
		outputs = append(outputs, onnx.Value{Name: "runexp_" + f.name, Elem: onnxpb.TensorProto_FLOAT})
	}
	g.SetOutputs(outputs...)
	g.ForgetShapes()
	g.Prune()
}
