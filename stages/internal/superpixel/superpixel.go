// Package superpixel divides images into segments of similar pixels, by the algorithms of scikit-image 0.26,
// pixel for pixel: SLIC (slic.go) on seeds of a regular grid (seeds.go) whose segments are made connected
// (connected.go), Felzenszwalb and Huttenlocher's merging along the edges of a graph (felzenszwalb.go), and
// quickshift (quickshift.go). lab.go converts colours to CIELAB, smooth.go is the Gaussian filter before
// them, and zoom.go resizes images and labels.
//
// Labels agree in every pixel as long as float64 arithmetic does: sums have scikit-image's order, and the
// matrix product of its colour conversion is made of fused multiplications and additions, as OpenBLAS makes
// it on processors that have them.
package superpixel

import (
	"math"

	"github.com/runexp/runexp/stages"
)

// An Image is an image in double precision. A pixel's channels are adjacent.
type Image struct {
	Height, Width, Channels int
	Pix                     []float64
}

// ImageOf returns a tensor of shape [C,H,W] as an image: u8 values divided by 255, others as they are.
func ImageOf(t stages.Tensor) Image {
	m := Image{t.Shape[1], t.Shape[2], t.Shape[0], make([]float64, t.Len())}
	n := m.Height * m.Width
	for k, v := range t.Float64s() {
		if t.DType == stages.U8 {
			v *= byteUnit
		}
		m.Pix[k%n*m.Channels+k/n] = v
	}
	return m
}

// byteUnit is by what scikit-image multiplies the values of u8 images.
const byteUnit = 1. / 255

// Finite reports whether all values of m are numbers.
func (m Image) Finite() bool {
	for _, v := range m.Pix {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// clone returns a copy of m.
func (m Image) clone() Image {
	m.Pix = append([]float64(nil), m.Pix...)
	return m
}

// colours returns m in CIELAB if it has three channels, and as it is otherwise. It may change m.
func (m Image) colours() Image {
	if m.Channels == 3 {
		m.toLab()
	}
	return m
}

// scale multiplies all values by a factor.
func (m Image) scale(by float64) {
	for k := range m.Pix {
		m.Pix[k] *= by
	}
}
