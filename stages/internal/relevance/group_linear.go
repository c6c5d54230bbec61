package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Linear is x·W + b over the last axis of x, with constant W [in, out] and optional b [out]: a MatMul and the
// Add that is its only reader. Inputs: x, W, b.
var opLinear = &Op{Type: "Linear", Kind: Affine, Roles: []Role{Data, Weight, Bias},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		return b.through(n, b.groups[n.Output[0]].members, dy[0])
	}}

func (f finder) linear(i int) (*Op, []Value, []int) {
	defer f.b.model[i].Named()
	n := f.b.model[i]
	if n.OpType != "MatMul" || f.constant(n.In(0)) || !f.constant(n.In(1)) ||
		len(f.b.Shape(n.Input[1])) != 2 {
		return nil, nil, nil
	}
	k := f.soleReader(n.Output[0])
	if k >= 0 && f.b.model[k].OpType == "Add" {
		for _, bias := range f.b.model[k].Input {
			if f.constant(bias) && size(f.b.Shape(bias)) == f.b.Shape(n.Input[1])[1] {
				return opLinear, []Value{n.Input[0], n.Input[1], bias}, []int{i, k}
			}
		}
	}
	return opLinear, []Value{n.Input[0], n.Input[1]}, []int{i}
}
