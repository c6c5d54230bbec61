package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// spare rewrites what ONNX Runtime's own optimisers get wrong.
func spare(m *onnx.Model) error {
	if err := decide(m); err != nil {
		return err
	}
	rewrite.SparePads(m)
	return nil
}

// decide puts in the place of an If the branch that it takes, wherever that hangs on
// shapes and weights alone. ONNX Runtime does so too, but frees what it has computed
// inside the branch before: up to release 1.27, the net then takes what lies in
// memory there, or doesn't load.
func decide(m *onnx.Model) error {
	for {
		conditions := rewrite.Conditions(m)
		if len(conditions) == 0 {
			return nil
		}
		known, err := truths(m, conditions)
		if err != nil {
			return err
		}
		if !rewrite.Decide(m, known) {
			return nil
		}
	}
}

// truths returns those of a model's truth values that ONNX Runtime computes before
// it runs the model.
func truths(m *onnx.Model, names []string) (map[string]bool, error) {
	g := m.Proto.Graph
	asked := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: m.Proto.IrVersion, OpsetImport: m.Proto.OpsetImport, Functions: m.Proto.Functions, Graph: &onnxpb.GraphProto{
		Name: g.Name, Node: g.Node, Initializer: slices.Clone(g.Initializer), Input: g.Input}}}
	outputs := make([]onnx.Value, len(names))
	for i, name := range names {
		outputs[i] = onnx.Value{Name: name, Elem: onnxpb.TensorProto_BOOL}
	}
	asked.SetOutputs(outputs...)
	asked.Prune()
	answered, err := optimised(asked)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, t := range answered.Proto.Graph.Initializer {
		if slices.Contains(names, t.Name) && t.DataType == int32(onnxpb.TensorProto_BOOL) && len(t.RawData)+len(t.Int32Data) == 1 {
			known[t.Name] = len(t.RawData) == 1 && t.RawData[0] != 0 || len(t.Int32Data) == 1 && t.Int32Data[0] != 0
		}
	}
	return known, nil
}
