package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Pad had its sizes and its value as attributes up to 10; from 18 on the sizes may be of some axes only,
// and from 19 on it may wrap around.
var pad = []converter{
	{"Pad", Oldest, 10, func(e *edit, n onnx.Node) error {
		e.attrToInput(n, "pads", 1)
		if v := n.Float("value", 0); v != 0 {
			n.Input = append(n.Input, e.scalar(n.Output[0]+"/value", v))
		}
		drop(n, "value")
		e.keep(n)
		return nil
	}},
	{"Pad", 18, Newest, func(e *edit, n onnx.Node) error {
		if mode := n.Text("mode", "constant"); mode == "wrap" {
			return fmt.Errorf("opset %d can't pad in the mode wrap", Opset)
		}
		if n.In(3) == "" {
			n.Input = n.Input[:min(3, len(n.Input))]
			e.keep(n)
			return nil
		}
		axes, err := e.known(n.In(3))
		if err != nil {
			return err
		}
		rank, err := e.rank(n.In(0))
		if err != nil {
			return err
		}
		before, after := make([]int, len(axes)), make([]int, len(axes))
		for i, a := range axes {
			if a < 0 {
				a += rank
			}
			if a < 0 || a >= rank {
				return fmt.Errorf("it has no axis %d", axes[i])
			}
			before[i], after[i] = a, rank+a
		}
		if e.constant(n.In(1)) == nil {
			// They are computed from shapes, and constant once these are known.
			at := e.ints(n.Output[0]+"/at", slices.Concat(before, after)...)
			none := e.ints(n.Output[0]+"/none", make([]int, 2*rank)...)
			n.Input[1] = e.op(n.Output[0], "ScatterElements", []string{none, at, n.In(1)})
			n.Input = n.Input[:3]
			e.keep(n)
			return nil
		}
		some, err := e.known(n.In(1))
		if err != nil {
			return err
		}
		if len(some) != 2*len(axes) {
			return fmt.Errorf("%d sizes for %d axes", len(some), len(axes))
		}
		pads := make([]int, 2*rank)
		for i := range axes {
			pads[before[i]], pads[after[i]] = some[i], some[len(axes)+i]
		}
		n.Input[1] = e.ints(n.Output[0]+"/pads", pads...)
		n.Input = n.Input[:3]
		e.keep(n)
		return nil
	}},
}
