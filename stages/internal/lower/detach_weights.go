package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// detachWeights turns the weights that detach selects into inputs, and returns them. ONNX Runtime's
// simplification and inference depend on few of a model's weights; without the others the model is written,
// loaded and read quickly.
func detachWeights(m *onnx.Model, detach func(*onnxpb.TensorProto) bool) (detached []*onnxpb.TensorProto) {
	g := m.Proto.Graph
	inputs := m.Inputs()
	var kept []*onnxpb.TensorProto
	for _, t := range g.Initializer {
		if !detach(t) {
			kept = append(kept, t)
			continue
		}
		detached = append(detached, t)
		inputs = append(inputs, onnx.Value{Name: t.Name, Elem: onnxpb.TensorProto_DataType(t.DataType),
			Shape: onnx.ShapeOf(t), Known: true})
	}
	g.Initializer = kept
	m.SetInputs(inputs...)
	return detached
}

// untyping reports whether no type or shape depends on a weight's numbers.
func untyping(t *onnxpb.TensorProto) bool {
	return t.DataType == int32(onnxpb.TensorProto_FLOAT) && onnx.Size(onnx.ShapeOf(t)) > 256
}

// multipliers returns a predicate of the weights with at least that many elements that only multiply
// matrices which depend on the image. No optimisation reads their numbers, unless they are between
// integers. A model with its own functions has none, since functions aren't searched.
func multipliers(m *onnx.Model, least int) func(*onnxpb.TensorProto) bool {
	if len(m.Proto.Functions) > 0 {
		return func(*onnxpb.TensorProto) bool { return false }
	}
	g := m.Proto.Graph
	live := map[string]bool{} // values that depend on the image, and not only on its shape
	for _, v := range g.Input {
		live[v.Name] = true
	}
	other := map[string]bool{} // values with other readers
	for _, v := range g.Output {
		other[v.Name] = true
	}
	factor := map[string]bool{}
	for _, n := range g.Node {
		taken := onnx.Taken(n)
		lives := slices.ContainsFunc(taken, func(v string) bool { return live[v] }) && n.OpType != "Shape" &&
			n.OpType != "Size"
		for _, v := range n.Output {
			live[v] = lives
		}
		for _, v := range taken {
			if lives && n.Domain == "" && (n.OpType == "MatMul" || n.OpType == "Gemm") {
				factor[v] = true
			} else {
				other[v] = true
			}
		}
	}
	return func(t *onnxpb.TensorProto) bool {
		return factor[t.Name] && !other[t.Name] && t.DataType == int32(onnxpb.TensorProto_FLOAT) &&
			onnx.Size(onnx.ShapeOf(t)) >= least
	}
}

// large is the smallest number of elements of a weight that is worth detaching.
const large = 1 << 16
