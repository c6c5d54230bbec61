package target

import (
	"math"
	"slices"
)

// An array is a value in double precision, in row-major order.
type array struct {
	shape []int
	data  []float64
}

func scalar(v float64) array { return array{data: []float64{v}} }

// number returns the only element.
func (a array) number() float64 { return a.data[0] }

// each applies a function to each element.
func (a array) each(f func(float64) float64) array {
	out := array{a.shape, make([]float64, len(a.data))}
	for i, v := range a.data {
		out.data[i] = f(v)
	}
	return out
}

// joined returns the shape that two shapes broadcast to, aligned at their last axes: of each axis the sizes
// are equal, or one of them is 1.
func joined(a, b []int) ([]int, bool) {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		x, y := 1, 1
		if k := i - (len(out) - len(a)); k >= 0 {
			x = a[k]
		}
		if k := i - (len(out) - len(b)); k >= 0 {
			y = b[k]
		}
		if x != y && x != 1 && y != 1 {
			return nil, false
		}
		out[i] = max(x, y)
		if x == 0 || y == 0 {
			out[i] = 0
		}
	}
	return out, true
}

// strides returns how far the elements of a are apart along the axes of a shape that it broadcasts to.
func (a array) strides(shape []int) []int {
	out := make([]int, len(shape))
	step := 1
	for k := len(a.shape) - 1; k >= 0; k-- {
		if a.shape[k] > 1 {
			out[k+len(shape)-len(a.shape)] = step
		}
		step *= a.shape[k]
	}
	return out
}

// with applies a function to the elements of two arrays that broadcast.
func (a array) with(b array, f func(x, y float64) float64) array {
	shape, _ := joined(a.shape, b.shape)
	out := array{shape, make([]float64, size(shape))}
	sa, sb := a.strides(shape), b.strides(shape)
	at := make([]int, len(shape))
	i, j := 0, 0
	for k := range out.data {
		out.data[k] = f(a.data[i], b.data[j])
		for axis := len(shape) - 1; axis >= 0; axis-- {
			at[axis]++
			i, j = i+sa[axis], j+sb[axis]
			if at[axis] < shape[axis] {
				break
			}
			i, j = i-at[axis]*sa[axis], j-at[axis]*sb[axis]
			at[axis] = 0
		}
	}
	return out
}

// reduce applies a function to the elements along some axes, which the result doesn't have.
func (a array) reduce(axes []int, f func([]float64) float64) array {
	var kept, gone []int
	for k := range a.shape {
		if slices.Contains(axes, k) {
			gone = append(gone, k)
		} else {
			kept = append(kept, k)
		}
	}
	moved := a.transpose(append(slices.Clone(kept), gone...))
	out := array{moved.shape[:len(kept)], nil}
	n := size(moved.shape[len(kept):])
	out.data = make([]float64, size(out.shape))
	for i := range out.data {
		out.data[i] = f(moved.data[i*n : (i+1)*n])
	}
	return out
}

// transpose permutes the axes.
func (a array) transpose(perm []int) array {
	if slices.IsSorted(perm) {
		return a
	}
	out := array{make([]int, len(perm)), make([]float64, len(a.data))}
	whole := a.strides(a.shape)
	steps := make([]int, len(perm))
	for k, p := range perm {
		out.shape[k], steps[k] = a.shape[p], whole[p]
	}
	at := make([]int, len(perm))
	i := 0
	for k := range out.data {
		out.data[k] = a.data[i]
		for axis := len(perm) - 1; axis >= 0; axis-- {
			at[axis]++
			i += steps[axis]
			if at[axis] < out.shape[axis] {
				break
			}
			i -= at[axis] * steps[axis]
			at[axis] = 0
		}
	}
	return out
}

// slice returns the elements from one index to before another along an axis.
func (a array) slice(axis, from, to int) array {
	shape := slices.Clone(a.shape)
	shape[axis] = to - from
	inner := size(a.shape[axis+1:])
	out := array{shape, make([]float64, 0, size(shape))}
	for outer := range size(a.shape[:axis]) {
		first := (outer*a.shape[axis] + from) * inner
		out.data = append(out.data, a.data[first:first+(to-from)*inner]...)
	}
	return out
}

// reshape returns the same elements in another shape.
func (a array) reshape(shape []int) array { return array{shape, a.data} }

// largest returns the index of the largest element, the first of equal ones; −1 if one isn't a number.
func largest(v []float64) int {
	best := 0
	for i, x := range v {
		if math.IsNaN(x) {
			return -1
		}
		if x > v[best] {
			best = i
		}
	}
	return best
}

// without returns a shape without some axes.
func without(shape, axes []int) []int {
	var out []int
	for k, d := range shape {
		if !slices.Contains(axes, k) {
			out = append(out, d)
		}
	}
	return out
}
