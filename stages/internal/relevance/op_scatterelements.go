package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// ScatterElements replaces elements by others, or adds these. The cotangents of the new elements are gathered
// from their positions; a replaced element gets zero.
var opScatterElements = &Op{
	Type: "ScatterElements", Kind: Move, Roles: []Role{Data, Config, Data},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape, put := b.Shape(n.Input[0]), b.Shape(n.Input[2])
		axis := b.axis(n, 0, len(shape))
		at := b.constInts(n, 1)
		along := onnx.Attr{Name: "axis", Value: axis}
		if at == nil || !b.scatters(n, func() []int { return targets(put, at, axis, shape[axis]) }) {
			return nil
		}
		kept := dy[0]
		if n.Text("reduction", "none") == "none" {
			kept = b.Emit("ScatterElements", shape, []Value{dy[0], n.Input[1], b.Zeros(put...)}, along)
		}
		return []Value{kept, "", b.Emit("GatherElements", put, []Value{dy[0], n.Input[1]}, along)}
	},
	Examples: []Example{
		{Name: "put", Inputs: [][]int{{3, 4}, nil, {3, 2}},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{3, 1, 2, 0, -2, -1}, 3, 2)},
			Attrs:  []onnx.Attr{{Name: "axis", Value: 1}}},
		{Name: "added", Inputs: [][]int{{3, 4}, nil, {2, 4}},
			Consts: map[int]any{1: onnx.IntTensor("", []int64{2, 0, 1, 2, 2, 1, 1, 0}, 2, 4)},
			Attrs:  []onnx.Attr{{Name: "reduction", Value: "add"}}},
	},
}

// targets returns the flat index of each position to which elements of the shape put are scattered: at has
// the index along the axis, of size d; other coordinates stay.
func targets(put, at []int, axis, d int) []int {
	out := make([]int, len(at))
	for i := range at {
		rest, stride := i, 1
		for a := len(put) - 1; a >= 0; a-- {
			k, length := rest%put[a], put[a]
			rest /= put[a]
			if a == axis {
				k, length = (at[i]+d)%d, d
			}
			out[i] += k * stride
			stride *= length
		}
	}
	return out
}

// scatters reports whether a node adds elements to others, or replaces each at most once; it fails for other
// nodes. places returns the flat index that each replaces.
func (b *Builder) scatters(n onnx.Node, places func() []int) bool {
	switch by := n.Text("reduction", "none"); {
	case by == "add":
		return true
	case by != "none":
		b.Fail(n, "its reduction %s isn't supported", by)
	case twice(places()):
		b.Fail(n, "its indices aren't unique")
	default:
		return true
	}
	return false
}

// twice reports whether an index occurs more than once.
func twice(places []int) bool {
	sorted := slices.Sorted(slices.Values(places))
	return len(slices.Compact(sorted)) < len(places)
}
