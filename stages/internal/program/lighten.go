package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// lighten makes inputs of a model's weights that are out, and returns them. What ONNX
// Runtime is asked of a model hangs on few of its weights, and without the others it is
// written, loaded and read in no time.
func lighten(m *onnx.Model, out func(*onnxpb.TensorProto) bool) (heavy []*onnxpb.TensorProto) {
	g := m.Proto.Graph
	inputs := m.Inputs()
	var kept []*onnxpb.TensorProto
	for _, t := range g.Initializer {
		if !out(t) {
			kept = append(kept, t)
			continue
		}
		heavy = append(heavy, t)
		inputs = append(inputs, onnx.Value{Name: t.Name, Elem: onnxpb.TensorProto_DataType(t.DataType), Shape: onnx.ShapeOf(t), Known: true})
	}
	g.Initializer = kept
	m.SetInputs(inputs...)
	return heavy
}

// meaningless reports whether no type or shape hangs on what a weight holds.
func meaningless(t *onnxpb.TensorProto) bool {
	return t.DataType == int32(onnxpb.TensorProto_FLOAT) && size(onnx.ShapeOf(t)) > 256
}

// multipliers returns what tells the weights of so many elements at least that do nothing
// but multiply matrices which hang on the image. When a model is simplified, nothing is
// computed of them, but where they stand between integers. Of a model with functions of
// its own there are none: these aren't looked into.
func multipliers(m *onnx.Model, least int) func(*onnxpb.TensorProto) bool {
	if len(m.Proto.Functions) > 0 {
		return func(*onnxpb.TensorProto) bool { return false }
	}
	g := m.Proto.Graph
	live := map[string]bool{} // what hangs on the image, and not on its shape alone
	for _, v := range g.Input {
		live[v.Name] = true
	}
	other := map[string]bool{} // what else is read
	for _, v := range g.Output {
		other[v.Name] = true
	}
	factor := map[string]bool{}
	for _, n := range g.Node {
		taken := onnx.Taken(n)
		lives := slices.ContainsFunc(taken, func(v string) bool { return live[v] }) && n.OpType != "Shape" && n.OpType != "Size"
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
		return factor[t.Name] && !other[t.Name] && t.DataType == int32(onnxpb.TensorProto_FLOAT) && size(onnx.ShapeOf(t)) >= least
	}
}

// large is how many elements a weight has that is worth the trouble.
const large = 1 << 16
