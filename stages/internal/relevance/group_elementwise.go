package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Elementwise is an element-wise function of one input computed by several nodes, such as GELU, SiLU or Mish.
// It starts at a value x with several readers and ends where all paths from x have joined. Input: x.
//
// dx = dy·f′(x), where f′ is computed backward from 1, so that dy is multiplied once rather than in every
// summand.
var opElementwise = &Op{
	Type: "Elementwise", Kind: Activation,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		members := b.groups[n.Output[0]].members
		g := dy[0]
		for {
			last := len(members) - 1
			x, by, ok := b.scale(members[last])
			if !ok || last == 0 || members[last-1].Output[0] != x {
				break
			}
			g, members = b.Mul(g, b.Scalar(float32(by))), members[:last]
		}
		one := b.g.Fresh("grad/one")
		b.unit, b.g.Types[one] = one, b.g.Types[n.Output[0]]
		slope := b.through(n, members, one)[0]
		b.unit = ""
		delete(b.g.Types, one)
		b.at(n)
		switch slope {
		case "":
			return []Value{""}
		case one:
			return []Value{g}
		}
		return []Value{b.Mul(g, slope)}
	},
}

func (f finder) elementwise(i int) (*Op, []Value, []int) {
	defer f.b.model[i].Named()
	// The first member is the first reader of x.
	for _, x := range f.b.model[i].Input {
		if f.constant(x) || len(f.readers[x]) < 2 || f.readers[x][0] != i {
			continue
		}
		if members := f.closed(x); members != nil {
			return opElementwise, []Value{x}, members
		}
	}
	return nil, nil, nil
}

// closed returns the nodes of the smallest element-wise function of x that includes all readers of x, nil if
// there is none.
func (f finder) closed(x Value) []int {
	inside := map[Value]bool{x: true}
	var members []int
	open := slices.Clone(f.readers[x]) // nodes that read a member's output
	for range 32 {                     // activations have fewer nodes
		slices.Sort(open)
		open = slices.Compact(open)
		if len(open) == 0 {
			return nil
		}
		k := open[0]
		n := f.b.model[k]
		op := f.b.op(n)
		nonlinear := op != nil && (op.Kind == Activation || n.OpType == "Pow" || n.OpType == "Clip")
		arithmetic := slices.Contains([]string{"Add", "Sub", "Mul", "Div", "Neg"}, n.OpType)
		if op == nil || len(n.Output) != 1 || !nonlinear && !arithmetic {
			return nil
		}
		for _, v := range n.Input {
			if v != "" && !inside[v] && !(f.constant(v) && size(f.b.Shape(v)) == 1) {
				return nil
			}
		}
		y := n.Output[0]
		inside[y] = true
		members = append(members, k)
		open = slices.DeleteFunc(open, func(o int) bool { return o == k })
		if len(open) == 0 {
			if !slices.Equal(f.b.Shape(x), f.b.Shape(y)) {
				return nil
			}
			return f.tail(members)
		}
		if f.visible[y] {
			return nil
		}
		open = append(open, f.readers[y]...)
	}
	return nil
}

// tail appends nodes that only scale the result, such as the ½ of GELU.
func (f finder) tail(members []int) []int {
	for {
		y := f.b.model[members[len(members)-1]].Output[0]
		k := f.soleReader(y)
		if k < 0 {
			return members
		}
		n := f.b.model[k]
		if n.OpType != "Mul" ||
			!slices.ContainsFunc(n.Input,
				func(v Value) bool { return f.constant(v) && size(f.b.Shape(v)) == 1 }) ||
			!slices.Equal(f.b.Shape(y), f.b.Shape(n.Output[0])) {
			return members
		}
		members = append(members, k)
	}
}
