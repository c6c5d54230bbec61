package target

import "fmt"

// resize gives the last two axes another size: each place has the mean over the places that it covers, by
// adaptive average pooling. It has no derivative.
var resize = operator{
	name: "resize", form: "resize(x, height, width), by the mean of what a place covers",
	names: []string{"x", "height", "width"}, required: 3, values: 1,
	bind: func(_ *binder, t *term) error {
		x := t.args[0]
		h, known := t.args[1].whole()
		w, also := t.args[2].whole()
		switch {
		case len(x.Shape) < 2:
			return fmt.Errorf("resize needs height and width, and this is of %v", x.Type)
		case !known || !also || h < 1 || w < 1 || h*w > mostPlaces:
			return fmt.Errorf("height and width are numbers of places, %d at most", mostPlaces)
		}
		t.ints, t.Low, t.High = []int{h, w}, x.Low, x.High
		t.Shape = append(append([]int{}, x.Shape[:len(x.Shape)-2]...), h, w)
		return nil
	},
	eval: func(t *term, args []array) (array, error) {
		x := args[0]
		for k, n := range t.ints {
			x = x.pooled(len(x.shape)-2+k, n)
		}
		return x, nil
	},
}

// mostPlaces bounds the places of a resized value.
const mostPlaces = 1 << 24

// pooled returns n means along an axis: place k covers ⌊k·d/n⌋ to ⌈(k+1)·d/n⌉ of d.
func (a array) pooled(axis, n int) array {
	d := a.shape[axis]
	shape := append([]int{}, a.shape...)
	shape[axis] = n
	out := array{shape, make([]float64, size(shape))}
	inner := size(a.shape[axis+1:])
	for outer := range size(a.shape[:axis]) {
		for k := range n {
			from, to := k*d/n, ((k+1)*d+n-1)/n
			for i := range inner {
				s := 0.0
				for j := from; j < to; j++ {
					s += a.data[(outer*d+j)*inner+i]
				}
				out.data[(outer*n+k)*inner+i] = s / float64(to-from)
			}
		}
	}
	return out
}
