package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// constantBranches replaces every If whose condition depends only on shapes and weights by the branch that
// it takes. ONNX Runtime does so too, but up to release 1.27 it frees values too early that it has computed
// inside the branch: the model then reads freed memory, or fails to load.
func (u *unit) constantBranches() error {
	m := u.model
	for {
		conditions := rewrite.Conditions(m)
		if len(conditions) == 0 {
			return nil
		}
		known, err := evaluate(m, conditions)
		if err != nil {
			return err
		}
		if !rewrite.InlineBranches(m, known) {
			return nil
		}
	}
}

// evaluate returns the booleans of a model that ONNX Runtime computes before it runs the model.
func evaluate(m *onnx.Model, names []string) (map[string]bool, error) {
	g := m.Proto.Graph
	query := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: m.Proto.IrVersion,
		OpsetImport: m.Proto.OpsetImport, Functions: m.Proto.Functions, Graph: &onnxpb.GraphProto{
			Name: g.Name, Node: g.Node, Initializer: slices.Clone(g.Initializer), Input: g.Input}}}
	outputs := make([]onnx.Value, len(names))
	for i, name := range names {
		outputs[i] = onnx.Value{Name: name, Elem: onnxpb.TensorProto_BOOL}
	}
	query.SetOutputs(outputs...)
	query.Prune()
	folded, err := optimise(query)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, t := range folded.Proto.Graph.Initializer {
		if slices.Contains(names, t.Name) && t.DataType == int32(onnxpb.TensorProto_BOOL) &&
			len(t.RawData)+len(t.Int32Data) == 1 {
			known[t.Name] = len(t.RawData) == 1 && t.RawData[0] != 0 ||
				len(t.Int32Data) == 1 && t.Int32Data[0] != 0
		}
	}
	return known, nil
}
