package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// sum emits a sum or a mean as a product with ones if its kernel adds in another order for other batches.
// If all kept axes are before or after the summed ones, and some after, the order depends on whether there
// are more sums than threads; if an image's part of the value isn't a multiple of a vector, the next image
// starts in the middle of one.
func (s invariant) sum() bool {
	rest, over, ok := s.axes()
	if !ok {
		return false
	}
	shape := s.shape()
	before, behind := onnx.Size(shape[:over[0]]), onnx.Size(shape[over[len(over)-1]+1:])
	stay := 1
	for _, a := range rest {
		stay *= shape[a]
	}
	count := onnx.Size(shape) / stay
	var x string
	switch {
	case count > 1 && behind > 1 && before*behind == stay:
		x = s.reshape(s.In(0), []int{before, count, behind})
		x = s.op("MatMul", []int{before, 1, behind}, []string{s.ones(1, count), x})
	case onnx.Size(shape)/s.batch%vector != 0:
		x = s.op("MatMul", []int{stay, 1}, []string{s.rows(rest, over), s.ones(count, 1)})
	default:
		return false
	}
	if s.OpType == "ReduceMean" {
		x = s.op("Div", s.g.Shape(x), []string{x, s.number(float32(count))})
	}
	return s.end("Reshape", x, s.to(s.g.Shape(s.Output[0])))
}

// axes returns the kept and the summed axes of the node's input, sorted; false if none is summed, or the
// axes aren't known.
func (s invariant) axes() (rest, over []int, ok bool) {
	named := s.Ints("axes")
	if s.In(1) != "" {
		constant, ok := s.g.Int64s(s.In(1))
		if !ok {
			return nil, nil, false
		}
		for _, a := range constant {
			named = append(named, int(a))
		}
	}
	shape := s.shape()
	all := len(named) == 0 && s.Int("noop_with_empty_axes", 0) == 0
	for i := range shape {
		if all || slices.Contains(named, i) || slices.Contains(named, i-len(shape)) {
			over = append(over, i)
		} else {
			rest = append(rest, i)
		}
	}
	return rest, over, len(over) > 0
}

// rows emits the node's input as a matrix whose rows are summed.
func (s invariant) rows(rest, over []int) string {
	var perm []int64
	var moved []int
	for _, a := range slices.Concat(rest, over) {
		perm, moved = append(perm, int64(a)), append(moved, s.shape()[a])
	}
	x := s.op("Transpose", moved, []string{s.In(0)}, onnx.Attr{Name: "perm", Value: perm})
	return s.reshape(x, []int{onnx.Size(moved[:len(rest)]), onnx.Size(moved[len(rest):])})
}

// ones emits a matrix of ones.
func (s invariant) ones(rows, columns int) string {
	matrix := []int{rows, columns}
	return s.op("Expand", matrix, []string{s.number(1), s.to(matrix)})
}
