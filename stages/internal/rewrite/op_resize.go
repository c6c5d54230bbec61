package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Resize of 10 samples at multiples of the scale and takes the element below; from 11 on it says how, and
// from 18 on it may leave axes out.
var resize = []converter{
	{"Resize", 10, 10, func(e *edit, n onnx.Node) error {
		n.Input = []string{n.In(0), "", n.In(1)}
		asymmetric(n)
		e.keep(n)
		return nil
	}},
	{"Resize", 18, Newest, func(e *edit, n onnx.Node) error {
		switch {
		case n.Int("antialias", 0) != 0:
			return fmt.Errorf("opset %d can't resize without aliasing", Opset)
		case n.Text("keep_aspect_ratio_policy", "stretch") != "stretch":
			return fmt.Errorf("opset %d can't resize by the aspect ratio", Opset)
		case n.Text("coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric":
			return fmt.Errorf("opset %d can't resize in the mode half_pixel_symmetric", Opset)
		}
		drop(n, "antialias")
		drop(n, "keep_aspect_ratio_policy")
		axes := n.Ints("axes")
		drop(n, "axes")
		if axes != nil {
			if err := e.allAxes(n, axes); err != nil {
				return err
			}
		}
		e.keep(n)
		return nil
	}},
}

// asymmetric states the default of Upsample and of the first Resize.
func asymmetric(n onnx.Node) {
	setText(n, "coordinate_transformation_mode", "asymmetric")
	setText(n, "nearest_mode", "floor")
}

// allAxes makes scales or sizes of some axes those of all.
func (e *edit) allAxes(n onnx.Node, axes []int) error {
	shape, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	for i, a := range axes {
		if a < 0 {
			axes[i] = a + len(shape)
		}
		if axes[i] < 0 || axes[i] >= len(shape) {
			return fmt.Errorf("it has no axis %d", a)
		}
	}
	if n.In(3) != "" {
		some, err := e.known(n.In(3))
		if err != nil {
			return err
		}
		if len(some) != len(axes) {
			return fmt.Errorf("%d sizes for %d axes", len(some), len(axes))
		}
		all := slices.Clone(shape)
		for i, a := range axes {
			all[a] = some[i]
		}
		n.Input = []string{n.In(0), "", "", e.ints(n.Output[0]+"/sizes", all...)}
		return nil
	}
	t := e.constant(n.In(2))
	if t == nil {
		return fmt.Errorf("%q isn't constant", n.In(2))
	}
	some, err := onnx.Float32s(t)
	if err != nil {
		return err
	}
	if len(some) != len(axes) {
		return fmt.Errorf("%d scales for %d axes", len(some), len(axes))
	}
	all := slices.Repeat([]float32{1}, len(shape))
	for i, a := range axes {
		all[a] = some[i]
	}
	n.Input = []string{n.In(0), "",
		e.weight(onnx.FloatTensor(e.m.Fresh(n.Output[0]+"/scales"), all, len(all)))}
	return nil
}
