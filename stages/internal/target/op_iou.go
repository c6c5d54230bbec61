package target

import (
	"errors"
	"fmt"
	"slices"
)

// formats of boxes, the numbers along the last axis: left, top, right, bottom, or centre and size.
var formats = []string{"xyxy", "cxcywh"}

// iou is the intersection of boxes divided by their union; boxes are along the last axis.
var iou = operator{
	name: "iou", form: "iou(a, b, format), of boxes xyxy or cxcywh along the last axis",
	names: []string{"a", "b", "format"}, required: 2, values: 2,
	bind: func(b *binder, t *term) error {
		if err := t.ofVectors(); err != nil {
			return err
		}
		if a := t.args[0].Shape; a[len(a)-1] != 4 {
			return fmt.Errorf("a box has 4 numbers along the last axis, and this is of %v", t.args[0].Type)
		}
		t.Low, t.High, t.ints = 0, 1, []int{0}
		if f := t.args[2]; f != nil {
			t.ints[0] = slices.Index(formats, f.node.text)
		}
		if t.ints[0] < 0 {
			return errors.New("the format of boxes is xyxy or cxcywh")
		}
		return nil
	},
	made: func(k kit, t *term, args []value) value {
		a, b := edges(k, args[0], t.ints[0] == 1), edges(k, args[1], t.ints[0] == 1)
		shared := a.shared(k, b)
		both := k.apply(&added, nil, a.area(k), b.area(k))
		return k.apply(&divided, nil, shared, k.apply(&subtracted, nil, both, shared))
	},
}

// A rectangle has the edges left, top, right and bottom.
type rectangle [4]value

// edges returns the edges of boxes.
func edges(k kit, boxes value, centred bool) (r rectangle) {
	axis := last(k, boxes)[0]
	shape := k.shape(boxes)[:axis]
	for i := range r {
		r[i] = k.apply(&reshaped, shape, k.apply(&part, []int{axis, i, i + 1}, boxes))
	}
	if !centred {
		return r
	}
	for i := range 2 {
		extent := k.apply(&multiplied, nil, r[i+2], k.constant(0.5))
		r[i], r[i+2] = k.apply(&subtracted, nil, r[i], extent), k.apply(&added, nil, r[i], extent)
	}
	return r
}

// area returns the areas of rectangles.
func (r rectangle) area(k kit) value {
	return k.apply(&multiplied, nil, k.apply(&subtracted, nil, r[2], r[0]),
		k.apply(&subtracted, nil, r[3], r[1]))
}

// shared returns the areas that rectangles have in common.
func (r rectangle) shared(k kit, s rectangle) value {
	var extent [2]value
	for i := range extent {
		from, to := k.apply(&larger, nil, r[i], s[i]), k.apply(&smaller, nil, r[i+2], s[i+2])
		extent[i] = k.apply(&rectified, nil, k.apply(&subtracted, nil, to, from))
	}
	return k.apply(&multiplied, nil, extent[0], extent[1])
}
