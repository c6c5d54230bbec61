package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// The attention operators of ONNX Runtime's optimiser have their heads concatenated in a token's elements,
// with equally many heads of keys and of queries. Attention computes queries, keys and values by one
// product; MultiHeadAttention takes them, and a bias. Forms that only CUDA supports, with several of them
// in one value, are refused.
var multiHeadAttention = []converter{
	{"com.microsoft.Attention", Oldest, Newest, func(e *edit, n onnx.Node) error {
		if n.In(3) != "" || n.In(4) != "" || n.In(6) != "" || !singleOutput(n) || n.Int("do_rotary", 0) != 0 {
			return fmt.Errorf("it has a mask of tokens, turns them, or keeps keys and values from one run " +
				"to the next")
		}
		shape, err := e.fixed(n.In(0))
		if err != nil {
			return err
		}
		weights, err := e.fixed(n.In(1))
		if err != nil {
			return err
		}
		if len(shape) != 3 || len(weights) != 2 {
			return fmt.Errorf("its input has the shape %v, its weights %v", shape, weights)
		}
		sizes := n.Ints("qkv_hidden_sizes")
		if sizes == nil {
			sizes = slices.Repeat([]int{weights[1] / 3}, 3)
		}
		if len(sizes) != 3 || slices.Min(sizes) < 0 || sizes[0]+sizes[1]+sizes[2] != weights[1] {
			return fmt.Errorf("queries, keys and values of the sizes %v aren't %d elements", sizes,
				weights[1])
		}
		hint := n.Output[0]
		x := e.sum(hint, e.op(hint, "MatMul", []string{n.In(0), n.In(1)}), n.In(2))
		var parts [3]part
		for i, v := range e.split(hint, x, 2, sizes...) {
			parts[i] = part{v, []int{shape[0], shape[1], sizes[i]}}
		}
		return e.attendParts(n, parts, n.In(5))
	}},
	{"com.microsoft.MultiHeadAttention", Oldest, Newest, func(e *edit, n onnx.Node) error {
		if n.In(4) != "" || n.In(6) != "" || n.In(7) != "" || !singleOutput(n) {
			return fmt.Errorf("it has a mask of tokens, or keeps keys and values from one run to the next")
		}
		parts, err := e.parts(n)
		if err != nil {
			return err
		}
		if n.In(3) != "" {
			sizes := make([]int, 3)
			for i, p := range parts {
				if len(p.shape) != 3 {
					return fmt.Errorf("its input %d has the shape %v and a bias", i, p.shape)
				}
				sizes[i] = p.shape[2]
			}
			for i, bias := range e.split(n.Output[0], n.In(3), 0, sizes...) {
				parts[i].v = e.op(n.Output[0], "Add", []string{parts[i].v, bias})
			}
		}
		return e.attendParts(n, parts, n.In(5))
	}},
}

// attendParts writes the attention of a node of ONNX Runtime's own operators.
func (e *edit) attendParts(n onnx.Node, parts [3]part, bias string) error {
	count := n.Int("num_heads", 0)
	a, err := e.heads(n.Output[0], parts, [3]int{count, count, count})
	if err != nil {
		return err
	}
	a.mask, a.causal, a.scale = bias, n.Int("unidirectional", 0) != 0, n.Float("scale", 0)
	return e.attend(n.Output[0], a)
}
