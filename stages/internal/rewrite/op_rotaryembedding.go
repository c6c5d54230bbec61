package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// RotaryEmbedding was introduced in opset 23: pairs (a, b) of a head's first elements are rotated by the
// angle of their position, (a·cos − b·sin, a·sin + b·cos). A pair is two neighbours, or an element of the
// first half and the corresponding one of the second.
var rotaryEmbedding = []converter{{"RotaryEmbedding", 23, Newest, func(e *edit, n onnx.Node) error {
	shape, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	x, hint, heads := n.In(0), n.Output[0], 1 // the axis of the heads
	split := slices.Clone(shape)
	if len(shape) == 3 {
		count := n.Int("num_heads", 0)
		if count < 1 || shape[2]%count != 0 {
			return fmt.Errorf("%d elements aren't %d heads", shape[2], count)
		}
		heads, split = 2, []int{shape[0], shape[1], count, shape[2] / count}
		x = e.reshape(hint, x, split...)
	}
	if len(split) != 4 {
		return fmt.Errorf("its input has %d axes", len(split))
	}
	all := split[3]
	turned := n.Int("rotary_embedding_dim", 0)
	if turned == 0 {
		turned = all
	}
	if turned < 2 || turned > all || turned%2 != 0 {
		return fmt.Errorf("%d of %d elements of a head can't be turned", turned, all)
	}
	angle := func(table string) string {
		if n.In(3) != "" {
			table = e.op(hint, "Gather", []string{table, n.In(3)}, onnx.Attr{Name: "axis", Value: 0})
		}
		return e.op(hint, "Unsqueeze", []string{table, e.ints(hint+"/heads", heads)})
	}
	cos, sin := angle(n.In(1)), angle(n.In(2))
	last := onnx.Attr{Name: "axis", Value: -1}
	parts := []string{x}
	if turned < all {
		parts = e.split(hint, x, 3, turned, all-turned)
	}
	half := turned / 2
	var pairs []string
	if n.Int("interleaved", 0) != 0 {
		pairs = e.split(hint, e.reshape(hint, parts[0], split[0], split[1], split[2], half, 2), 4, 1, 1)
		for i, p := range pairs {
			pairs[i] = e.reshape(hint, p, split[0], split[1], split[2], half)
		}
	} else {
		pairs = e.split(hint, parts[0], 3, half, half)
	}
	product := func(x, y string) string { return e.op(hint, "Mul", []string{x, y}) }
	a := e.op(hint, "Sub", []string{product(pairs[0], cos), product(pairs[1], sin)})
	b := e.op(hint, "Add", []string{product(pairs[0], sin), product(pairs[1], cos)})
	if n.Int("interleaved", 0) != 0 {
		for _, v := range []*string{&a, &b} {
			*v = e.reshape(hint, *v, split[0], split[1], split[2], half, 1)
		}
		parts[0] = e.reshape(hint, e.op(hint, "Concat", []string{a, b}, last), split[0], split[1], split[2],
			turned)
		parts = append([]string{parts[0]}, parts[1:]...)
	} else {
		parts = append([]string{a, b}, parts[1:]...)
	}
	y := parts[0]
	if len(parts) > 1 {
		y = e.op(hint, "Concat", parts, last)
	}
	e.reshapeTo(hint, y, shape...)
	return nil
}}}
