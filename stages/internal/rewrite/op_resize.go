package rewrite

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// At 10, Resize samples at multiples of the scale and takes the element below; from 11 on attributes say
// how coordinates are computed; and from 18 on it may leave out axes, keep the aspect ratio, and filter when
// it reduces, which opset 17 can't: then it is a product with a matrix of weights along each axis.
var resize = []converter{
	{"Resize", 10, 10, func(e *edit, n onnx.Node) error {
		n.Input = []string{n.In(0), "", n.In(1)}
		asymmetric(n)
		e.keep(n)
		return nil
	}},
	{"Resize", 18, Newest, func(e *edit, n onnx.Node) error {
		policy := n.Text("keep_aspect_ratio_policy", "stretch")
		if n.In(3) == "" {
			policy = "stretch" // it only matters for sizes
		}
		if n.Int("antialias", 0) != 0 && n.Text("mode", "nearest") != "nearest" || policy != "stretch" ||
			n.Text("coordinate_transformation_mode", "half_pixel") == "half_pixel_symmetric" {
			return e.resample(n, policy)
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

// allAxes extends scales or sizes of some axes to all.
func (e *edit) allAxes(n onnx.Node, axes []int) error {
	shape, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	sizes, scales, err := e.extents(n, shape, axes)
	if err != nil {
		return err
	}
	if sizes != nil {
		n.Input = []string{n.In(0), "", "", e.ints(n.Output[0]+"/sizes", sizes...)}
		return nil
	}
	n.Input = []string{n.In(0), "",
		e.weight(onnx.FloatTensor(e.m.Fresh(n.Output[0]+"/scales"), scales, len(scales)))}
	return nil
}

// extents returns the sizes that a Resize states, or else its scales, for all axes of its input. axes are
// the axes for which it states them, nil for all.
func (e *edit) extents(n onnx.Node, shape, axes []int) (sizes []int, scales []float32, err error) {
	if axes == nil {
		for a := range shape {
			axes = append(axes, a)
		}
	}
	axes = slices.Clone(axes)
	for i, a := range axes {
		if a < 0 {
			axes[i] = a + len(shape)
		}
		if axes[i] < 0 || axes[i] >= len(shape) {
			return nil, nil, fmt.Errorf("it has no axis %d", a)
		}
	}
	if n.In(3) != "" {
		some, err := e.known(n.In(3))
		if err != nil {
			return nil, nil, err
		}
		if len(some) != len(axes) {
			return nil, nil, fmt.Errorf("%d sizes for %d axes", len(some), len(axes))
		}
		sizes = slices.Clone(shape)
		for i, a := range axes {
			sizes[a] = some[i]
		}
		return sizes, nil, nil
	}
	t := e.constant(n.In(2))
	if t == nil {
		return nil, nil, fmt.Errorf("%q isn't constant", n.In(2))
	}
	some, err := onnx.Float32s(t)
	if err != nil {
		return nil, nil, err
	}
	if len(some) != len(axes) {
		return nil, nil, fmt.Errorf("%d scales for %d axes", len(some), len(axes))
	}
	scales = slices.Repeat([]float32{1}, len(shape))
	for i, a := range axes {
		scales[a] = some[i]
	}
	return nil, scales, nil
}

// resample writes a Resize as a product along each axis that it changes.
func (e *edit) resample(n onnx.Node, policy string) error {
	in, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	f, err := filterOf(n)
	if err != nil {
		return err
	}
	axes := n.Ints("axes")
	out, scales, err := e.extents(n, in, axes)
	if err != nil {
		return err
	}
	if out == nil {
		for a, d := range in {
			out = append(out, int(float32(d)*scales[a]))
		}
	} else if scales, err = kept(policy, in, out, axes); err != nil {
		return err
	}
	x, hint := n.In(0), n.Output[0]
	same := slices.Equal(in, out) // ONNX Runtime copies it, whatever the scales are
	for a, d := range in {
		if same || d == out[a] && (scales[a] == 1 || f.antialias) {
			continue
		}
		w, err := e.matrix(out[a], d)
		if err != nil {
			return err
		}
		for o := range out[a] {
			row := make([]float64, d)
			f.weights(row, o, out[a], float64(scales[a]))
			for i, v := range row {
				w[o*d+i] = float32(v)
			}
		}
		x = e.along(hint, x, a, len(in), e.weight(onnx.FloatTensor(e.m.Fresh(hint+"/weights"), w, out[a], d)))
	}
	e.to(hint, "Identity", []string{x})
	return nil
}

// kept returns the scale of each axis of a Resize to sizes. A policy that keeps the aspect ratio scales all
// axes alike, and changes their sizes accordingly.
func kept(policy string, in, out, axes []int) ([]float32, error) {
	scales := make([]float32, len(in))
	for a := range in {
		if in[a] < 1 || out[a] < 1 {
			return nil, fmt.Errorf("it makes %v of %v", out, in)
		}
		scales[a] = float32(out[a]) / float32(in[a])
	}
	if policy == "stretch" {
		return scales, nil
	}
	if axes == nil {
		for a := range in {
			axes = append(axes, a)
		}
	}
	choose := map[string]func(x, y float32) float32{
		"not_larger":  func(x, y float32) float32 { return min(x, y) },
		"not_smaller": func(x, y float32) float32 { return max(x, y) },
	}[policy]
	if choose == nil {
		return nil, fmt.Errorf("its keep_aspect_ratio_policy is %q", policy)
	}
	at := func(i int) int { return (axes[i] + len(in)) % len(in) }
	common := scales[at(0)]
	for i := range axes {
		common = choose(common, scales[at(i)])
	}
	for i := range axes {
		scales[at(i)] = common
		out[at(i)] = int(math.Round(float64(common * float32(in[at(i)]))))
	}
	return scales, nil
}

// along writes the product of a matrix [to, from] and x along an axis.
func (e *edit) along(hint, x string, axis, rank int, w string) string {
	if axis == rank-2 {
		return e.op(hint, "MatMul", []string{w, x})
	}
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = i
	}
	perm[axis], perm[rank-1] = rank-1, axis
	swap := func(v string) string {
		if axis == rank-1 {
			return v
		}
		return e.transpose(hint, v, perm...)
	}
	return swap(e.op(hint, "MatMul", []string{swap(x), e.transpose(hint, w, 1, 0)}))
}

// A filter says how a Resize weighs the elements around a position.
type filter struct {
	place     string  // how the position in the input is computed
	reach     float64 // the distance of the elements that count
	at        func(distance float64) float64
	antialias bool // elements reach further, and count less, if the output is smaller
	exclude   bool // elements outside the input don't count; otherwise they are the ones at its edge
}

func filterOf(n onnx.Node) (filter, error) {
	f := filter{place: n.Text("coordinate_transformation_mode", "half_pixel"), reach: 1,
		antialias: n.Int("antialias", 0) != 0, exclude: n.Int("exclude_outside", 0) != 0,
		at: func(d float64) float64 { return max(0, 1-math.Abs(d)) }}
	switch n.Text("mode", "nearest") {
	case "linear":
	case "cubic":
		a := float64(n.Float("cubic_coeff_a", -0.75))
		f.reach, f.at = 2, func(d float64) float64 {
			switch d = math.Abs(d); {
			case d < 1:
				return ((a+2)*d-(a+3))*d*d + 1
			case d < 2:
				return ((a*d-5*a)*d+8*a)*d - 4*a
			}
			return 0
		}
	default:
		return f, fmt.Errorf("opset %d can't resize to the nearest element so", Opset)
	}
	if !slices.Contains([]string{"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
		"half_pixel_symmetric"}, f.place) {
		return f, fmt.Errorf("opset %d can't resize in the mode %s so", Opset, f.place)
	}
	return f, nil
}

// weights sets row, which is zeros, to the weights of the input elements in element o of the output, which
// has out elements.
func (f filter) weights(row []float64, o, out int, scale float64) {
	at := f.origin(o, len(row), out, scale)
	stretch := 1.0
	if f.antialias {
		stretch = max(1, 1/scale)
	}
	sum := 0.0
	for i := int(math.Floor(at - f.reach*stretch)); i <= int(math.Ceil(at+f.reach*stretch)); i++ {
		if w := f.at((float64(i) - at) / stretch); !f.exclude || i >= 0 && i < len(row) {
			row[min(max(i, 0), len(row)-1)] += w
			sum += w
		}
	}
	for i := range row {
		row[i] /= sum
	}
}

// origin returns the input coordinate of element o of the output.
func (f filter) origin(o, in, out int, scale float64) float64 {
	switch {
	case f.place == "asymmetric":
		return float64(o) / scale
	case out == 1 && (f.place == "align_corners" || f.place == "pytorch_half_pixel"):
		return 0
	case f.place == "align_corners":
		return float64(o) * float64(in-1) / float64(out-1)
	case f.place == "half_pixel_symmetric":
		half := float64(in) / 2
		return half*(1-float64(out)/(scale*float64(in))) + (float64(o)+0.5)/scale - 0.5
	}
	return (float64(o)+0.5)/scale - 0.5
}
