package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Split has the sizes of its parts as an input from 13 on; from 18 on it may have their number instead, and
// the last part may be smaller.
var split = []converter{
	{"Split", Oldest, 12, func(e *edit, n onnx.Node) error {
		e.attrToInput(n, "split", 1)
		e.keep(n)
		return nil
	}},
	{"Split", 18, Newest, func(e *edit, n onnx.Node) error {
		parts := n.Int("num_outputs", 0)
		drop(n, "num_outputs")
		if parts == 0 || n.In(1) != "" {
			e.keep(n)
			return nil
		}
		shape, axis := e.types[n.In(0)].Shape, n.Int("axis", 0)
		if axis < 0 {
			axis += len(shape)
		}
		if axis < 0 || axis >= len(shape) || shape[axis] == onnx.Free {
			return fmt.Errorf("the shape of %q isn't known", n.In(0))
		}
		if parts < 0 || parts != len(n.Output) {
			return fmt.Errorf("it has %d outputs and says %d", len(n.Output), parts)
		}
		sizes := make([]int, parts)
		each := (shape[axis] + parts - 1) / parts
		left := shape[axis]
		for i := range sizes {
			sizes[i] = min(each, left)
			left -= sizes[i]
		}
		n.Input = []string{n.In(0), e.ints(n.Output[0]+"/split", sizes...)}
		e.keep(n)
		return nil
	}},
}
