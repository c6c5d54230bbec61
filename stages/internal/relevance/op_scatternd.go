package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// ScatterND replaces parts by others, or adds these, by indices on the first axes. The cotangents of the new
// parts are gathered from their positions; a replaced part gets zero.
var opScatterND = &Op{
	Type: "ScatterND", Kind: Move, Roles: []Role{Data, Config, Data},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape, put := b.Shape(n.Input[0]), b.Shape(n.Input[2])
		at := b.constInts(n, 1)
		if at == nil || !b.scatters(n, func() []int { return parts(shape, b.Shape(n.Input[1]), at) }) {
			return nil
		}
		kept := dy[0]
		if n.Text("reduction", "none") == "none" {
			kept = b.Emit("ScatterND", shape, []Value{dy[0], n.Input[1], b.Zeros(put...)})
		}
		return []Value{kept, "", b.Emit("GatherND", put, []Value{dy[0], n.Input[1]})}
	},
	Examples: []Example{
		{Name: "put elements", Inputs: [][]int{{3, 4}, nil, {3}},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{0, 1, 2, 3, 0, -1}, 3, 2)}},
		{Name: "put rows", Inputs: [][]int{{3, 4, 2}, nil, {2, 4, 2}},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{2, 0}, 2, 1)}},
		{Name: "added", Inputs: [][]int{{3, 4}, nil, {3, 4}},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{2, 1, 2}, 3, 1)},
			Attrs:  []onnx.Attr{{Name: "reduction", Value: "add"}}},
	},
}

// parts returns the flat indices of the parts of a value that the indices at, of shape of, select.
func parts(shape, of, at []int) []int {
	if len(of) == 0 || of[len(of)-1] == 0 {
		return nil
	}
	depth := of[len(of)-1]
	out := make([]int, len(at)/depth)
	for i := range out {
		for a := range depth {
			out[i] = out[i]*shape[a] + (at[i*depth+a]+shape[a])%shape[a]
		}
	}
	return out
}
