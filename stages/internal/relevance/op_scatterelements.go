package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// ScatterElements puts elements into the place of others, or adds them. The cotangents of what was put are
// picked there; what it took the place of has none.
var opScatterElements = &Op{
	Type: "ScatterElements", Kind: Move, Roles: []Role{Data, Config, Data},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		shape, put := b.Shape(n.Input[0]), b.Shape(n.Input[2])
		axis := b.axis(n, 0, len(shape))
		at := b.constInts(n, 1)
		kept := dy[0]
		switch by := n.Text("reduction", "none"); {
		case at == nil:
			return nil
		case by == "add":
		case by != "none":
			b.Fail(n, "it scatters by %s", by)
			return nil
		case twice(targets(put, at, axis, shape[axis])):
			b.Fail(n, "it puts two elements into one place")
			return nil
		default:
			kept = b.Emit("ScatterElements", shape, []Value{dy[0], n.Input[1], b.Zeros(put...)},
				onnx.Attr{Name: "axis", Value: axis})
		}
		return []Value{kept, "",
			b.Emit("GatherElements", put, []Value{dy[0], n.Input[1]}, onnx.Attr{Name: "axis", Value: axis})}
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

// targets returns a number for each place that elements of the shape put go to: at has where along the axis,
// which is d long; their other coordinates are their own.
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

// twice reports whether a place stands there more than once.
func twice(places []int) bool {
	sorted := slices.Sorted(slices.Values(places))
	return len(slices.Compact(sorted)) < len(places)
}
