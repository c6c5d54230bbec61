package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// mostParts bounds the number of parts of a value.
const mostParts = 1 << 12

// Sequences of tensors, introduced in opset 11, are replaced by their tensors: the values in a sequence are
// recorded, and a node that takes one out of it is replaced by that. PyTorch's exporter splits with them.
var sequence = []converter{
	{"SplitToSequence", 11, Newest, func(e *edit, n onnx.Node) error {
		sizes, axis, err := e.cuts(n)
		if err != nil {
			return err
		}
		hint := n.Output[0]
		parts := e.split(hint, n.In(0), axis, sizes...)
		if n.In(1) == "" && n.Int("keepdims", 1) == 0 {
			for i, p := range parts {
				parts[i] = e.op(hint, "Squeeze", []string{p, e.ints(hint+"/axis", axis)})
			}
		}
		e.sequences[hint] = parts
		return nil
	}},
	{"SequenceConstruct", 11, Newest, func(e *edit, n onnx.Node) error {
		e.sequences[n.Output[0]] = slices.Clone(n.Input)
		return nil
	}},
	{"SequenceAt", 11, Newest, func(e *edit, n onnx.Node) error {
		parts, err := e.sequence(n)
		if err != nil {
			return err
		}
		at, err := e.known(n.In(1))
		if err != nil {
			return err
		}
		if len(at) != 1 || at[0] < -len(parts) || at[0] >= len(parts) {
			return fmt.Errorf("it takes number %v of %d", at, len(parts))
		}
		e.to(n.Output[0], "Identity", []string{parts[(at[0]+len(parts))%len(parts)]})
		return nil
	}},
	{"ConcatFromSequence", 11, Newest, func(e *edit, n onnx.Node) error {
		parts, err := e.sequence(n)
		if err != nil {
			return err
		}
		axis := n.Int("axis", 0)
		if n.Int("new_axis", 0) != 0 {
			apart := make([]string, len(parts))
			for i, p := range parts {
				apart[i] = e.op(n.Output[0], "Unsqueeze", []string{p, e.ints(n.Output[0]+"/axis", axis)})
			}
			parts = apart
		}
		e.to(n.Output[0], "Concat", parts, onnx.Attr{Name: "axis", Value: axis})
		return nil
	}},
}

// sequence returns the values in the sequence that a node reads.
func (e *edit) sequence(n onnx.Node) ([]string, error) {
	parts := e.sequences[n.In(0)]
	if len(parts) == 0 {
		return nil, fmt.Errorf("the elements of the sequence %q aren't known", n.In(0))
	}
	return parts, nil
}

// cuts returns the sizes of the parts of a SplitToSequence, and their axis.
func (e *edit) cuts(n onnx.Node) (sizes []int, axis int, err error) {
	shape, err := e.fixed(n.In(0))
	if err != nil {
		return nil, 0, err
	}
	if axis = n.Int("axis", 0); axis < 0 {
		axis += len(shape)
	}
	if axis < 0 || axis >= len(shape) {
		return nil, 0, fmt.Errorf("%v has no axis %d", shape, n.Int("axis", 0))
	}
	each := 1
	if n.In(1) != "" {
		if sizes, err = e.known(n.In(1)); err != nil {
			return nil, 0, err
		}
		if len(sizes) == 0 {
			return nil, 0, fmt.Errorf("%q says no sizes of parts", n.In(1))
		}
		if len(e.constant(n.In(1)).Dims) > 0 {
			return sizes, axis, nil
		}
		each = sizes[0]
	}
	if each < 1 || shape[axis] == 0 || shape[axis]/each >= mostParts {
		return nil, 0, fmt.Errorf("parts of %d can't be cut out of %d", each, shape[axis])
	}
	sizes = slices.Repeat([]int{each}, shape[axis]/each)
	if rest := shape[axis] % each; rest > 0 {
		sizes = append(sizes, rest)
	}
	return sizes, axis, nil
}
