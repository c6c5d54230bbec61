package attribute

import (
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// put emits the map, given values of the layer's shape: what [Tapped.put] computes.
func (m *emission) put(p Tapped, values standalone.Numbers) (standalone.Numbers, error) {
	if p.atInput(m.net) {
		return reduction(p.Reduce, values), nil
	}
	at, err := m.planes(p, values)
	if err != nil || p.Reduce == metric.None {
		return at, err
	}
	return m.putPlane(p, reduction(p.Reduce, at), "bilinear"), nil
}

// reduction emits one value of the channels of each place, unless they stay.
func reduction(how metric.Reduction, x standalone.Numbers) standalone.Numbers {
	switch how {
	case metric.None:
		return x
	case metric.AbsSum:
		return x.Sum(1).Abs()
	case metric.SumAbs:
		return x.Abs().Sum(1)
	}
	return x.Sum(1)
}

// single emits what a reduction makes of the only channel of a plane, which it keeps.
func single(how metric.Reduction, plane standalone.Numbers) standalone.Numbers {
	if how == metric.AbsSum || how == metric.SumAbs {
		return plane.Abs()
	}
	return plane
}

// planes emits the values of a layer as channels on a grid of places, [batch, K, h, w].
func (m *emission) planes(p Tapped, v standalone.Numbers) (standalone.Numbers, error) {
	switch len(v.Shape) {
	case 4:
		return v, nil
	case 3:
		if at := relevance.Places(m.net.Tokens, v.Shape[1]); !at.IsZero() {
			v = v.Slice(1, at.Prefix, v.Shape[1]).Transpose(0, 2, 1)
			return v.Reshape(v.Shape[0], v.Shape[1], at.Height, at.Width), nil
		}
	}
	return v, p.unplaced(v.Shape[1:])
}

// putPlane emits the map, given one value for each place of a layer, [batch, h, w].
func (m *emission) putPlane(p Tapped, plane standalone.Numbers, how string) standalone.Numbers {
	if p.Size != "layer" {
		plane = m.resized(plane, how)
	}
	if p.Reduce == metric.None {
		return plane.Reshape(plane.Shape[0], 1, plane.Shape[1], plane.Shape[2])
	}
	return plane
}

// resized emits a plane [batch, h, w] at the images' size.
func (m *emission) resized(x standalone.Numbers, how string) standalone.Numbers {
	h, w, height, width := x.Shape[1], x.Shape[2], m.net.Height, m.net.Width
	if h == height && w == width {
		return x
	}
	rows, columns := interpolation(h, height, how), interpolation(w, width, how)
	return m.Constant(rows, 1, height, h).MatMul(x).MatMul(m.Constant(transposed(columns, w), 1, w, width))
}

// interpolation returns the matrix [to, from] by which from values in a column become to values.
func interpolation(from, to int, how string) []float64 {
	out := make([]float64, to*from)
	for k := range from {
		unit := make([]float64, from)
		unit[k] = 1
		for i, v := range resized(unit, from, 1, to, 1, how) {
			out[i*from+k] = v
		}
	}
	return out
}

// transposed returns a matrix with so many columns transposed.
func transposed(matrix []float64, columns int) []float64 {
	rows := len(matrix) / columns
	out := make([]float64, len(matrix))
	for i, v := range matrix {
		out[i%columns*rows+i/columns] = v
	}
	return out
}
