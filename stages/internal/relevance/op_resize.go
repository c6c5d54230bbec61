package relevance

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Resize interpolates each axis separately, so that its adjoint is a product with the transposed
// interpolation matrix of each axis. All modes are supported, without antialiasing and regions of interest.
var opResize = &Op{
	Type: "Resize", Kind: Affine, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, y := b.Shape(n.Input[0]), b.Shape(n.Output[0])
		mode, place := n.Text("mode", "nearest"), n.Text("coordinate_transformation_mode", "half_pixel")
		known := map[string]bool{"half_pixel": true, "pytorch_half_pixel": true, "asymmetric": true,
			"align_corners": true}
		if mode != "nearest" && mode != "linear" && mode != "cubic" || !known[place] ||
			n.Int("antialias", 0) != 0 {
			b.Fail(n, "its mode %s with %s isn't supported", mode, place)
			return nil
		}
		if slices.Equal(x, y) {
			return []Value{dy[0]} // ONNX Runtime copies, whatever the scales
		}
		scales, _ := b.g.Float32s(n.In(2))
		g := dy[0]
		for axis, d := range x {
			scale := float64(y[axis]) / float64(d)
			if len(scales) == len(x) {
				scale = float64(scales[axis])
			}
			if d == y[axis] && scale == 1 {
				continue
			}
			matrix := alloc[float32](b, y[axis], d)
			for o := range y[axis] {
				at := origin(place, o, d, y[axis], scale)
				if mode == "nearest" {
					i := min(max(round(n.Text("nearest_mode", "round_prefer_floor"), at), 0), d-1)
					matrix[o*d+i] = 1
					continue
				}
				if mode == "cubic" {
					low := math.Floor(at)
					weights := cubic(float64(n.Float("cubic_coeff_a", -0.75)), at-low)
					if n.Int("exclude_outside", 0) != 0 {
						weights = inside(weights, int(low)-1, d)
					}
					for k, w := range weights {
						matrix[o*d+min(max(int(low)+k-1, 0), d-1)] += float32(w)
					}
					continue
				}
				at = min(max(at, 0), float64(d-1))
				low := int(at)
				high := min(low+1, d-1)
				matrix[o*d+low] += float32(1 - (at - float64(low)))
				matrix[o*d+high] += float32(at - float64(low))
			}
			g = b.along(g, axis, b.Floats(matrix, y[axis], d))
		}
		return []Value{g}
	},
	Examples: []Example{
		{Name: "twice, nearest", Inputs: [][]int{{2, 3, 3, 4}, nil, nil},
			Consts: map[int]any{2: []float32{1, 1, 2, 2}}, Attrs: []onnx.Attr{
				{Name: "coordinate_transformation_mode", Value: "asymmetric"},
				{Name: "nearest_mode", Value: "floor"}}},
		{Name: "nearest to sizes", Inputs: [][]int{{2, 3, 3, 4}, nil, nil, nil},
			Consts: map[int]any{3: onnx.IntTensor("", []int64{2, 3, 5, 3}, 4)}},
		{Name: "nearest upwards", Inputs: [][]int{{2, 3, 3, 4}, nil, nil},
			Consts: map[int]any{2: []float32{1, 1, 2, 1.5}}, Attrs: []onnx.Attr{
				{Name: "nearest_mode", Value: "round_prefer_ceil"}}},
		{Name: "nearest above", Inputs: [][]int{{2, 3, 3, 4}, nil, nil},
			Consts: map[int]any{2: []float32{1, 1, 2, 1.5}}, Attrs: []onnx.Attr{
				{Name: "nearest_mode", Value: "ceil"},
				{Name: "coordinate_transformation_mode", Value: "asymmetric"}}},
		{Name: "linear", Inputs: [][]int{{2, 3, 3, 4}, nil, nil},
			Consts: map[int]any{2: []float32{1, 1, 2, 1.5}}, Attrs: []onnx.Attr{
				{Name: "mode", Value: "linear"}}},
		{Name: "linear, corners", Inputs: [][]int{{2, 3, 3, 4}, nil, nil, nil},
			Consts: map[int]any{3: []int64{2, 3, 5, 7}}, Attrs: []onnx.Attr{
				{Name: "mode", Value: "linear"},
				{Name: "coordinate_transformation_mode", Value: "align_corners"}}},
		{Name: "linear downwards, torch's", Inputs: [][]int{{2, 3, 6, 5}, nil, nil, nil},
			Consts: map[int]any{3: []int64{2, 3, 3, 1}}, Attrs: []onnx.Attr{
				{Name: "mode", Value: "linear"},
				{Name: "coordinate_transformation_mode", Value: "pytorch_half_pixel"}}},
		{Name: "cubic", Inputs: [][]int{{2, 3, 3, 4}, nil, nil},
			Consts: map[int]any{2: []float32{1, 1, 2, 1.5}}, Attrs: []onnx.Attr{
				{Name: "mode", Value: "cubic"}}},
		{Name: "cubic downwards", Inputs: [][]int{{2, 3, 6, 5}, nil, nil, nil},
			Consts: map[int]any{3: []int64{2, 3, 4, 3}}, Attrs: []onnx.Attr{
				{Name: "mode", Value: "cubic"}, {Name: "cubic_coeff_a", Value: float32(-0.5)},
				{Name: "coordinate_transformation_mode", Value: "align_corners"}}},
		{Name: "cubic, of what is inside", Inputs: [][]int{{2, 3, 3, 4}, nil, nil},
			Consts: map[int]any{2: []float32{1, 1, 2, 1.5}}, Attrs: []onnx.Attr{
				{Name: "mode", Value: "cubic"}, {Name: "exclude_outside", Value: 1}}},
	},
}

// cubic returns the weights of four consecutive elements at position t between the second and the third:
// Keys's convolution with slope a.
func cubic(a, t float64) [4]float64 {
	near := func(x float64) float64 { return ((a+2)*x-(a+3))*x*x + 1 }
	far := func(x float64) float64 { return ((a*x-5*a)*x+8*a)*x - 4*a }
	return [4]float64{far(1 + t), near(t), near(1 - t), far(2 - t)}
}

// inside returns the weights, of as many elements from first on, without those that aren't among the d
// elements of an axis.
func inside(weights [4]float64, first, d int) [4]float64 {
	sum := 0.0
	for k := range weights {
		if first+k < 0 || first+k >= d {
			weights[k] = 0
		}
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

// origin returns the input coordinate of output element o.
func origin(place string, o, in, out int, scale float64) float64 {
	switch {
	case place == "asymmetric":
		return float64(o) / scale
	case place == "align_corners" && out == 1, place == "pytorch_half_pixel" && out == 1:
		return 0
	case place == "align_corners":
		return float64(o) * float64(in-1) / float64(out-1)
	}
	return (float64(o)+0.5)/scale - 0.5
}

func round(mode string, at float64) int {
	switch mode {
	case "floor":
		return int(math.Floor(at))
	case "ceil":
		return int(math.Ceil(at))
	case "round_prefer_ceil":
		return int(math.Floor(at + 0.5))
	}
	return int(math.Ceil(at - 0.5))
}
