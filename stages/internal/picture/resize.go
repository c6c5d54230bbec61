package picture

import (
	"fmt"
	"math"
)

// A Filter is a resampling kernel.
type Filter struct {
	support float64                 // half the kernel's width in pixels, when upsampling
	weight  func(x float64) float64 // nil: the whole weight is on the pixel that holds the centre
}

// Nearest returns the filter that copies pixels, for pictures of numbers that have no mean.
func Nearest() Filter { return Filter{} }

// Bilinear returns the triangle filter.
func Bilinear() Filter {
	return Filter{1, func(x float64) float64 { return max(0, 1-math.Abs(x)) }}
}

// Bicubic returns Keys' cubic convolution with a = −1/2.
func Bicubic() Filter {
	const a = -0.5
	return Filter{2, func(x float64) float64 {
		// Each product is rounded to float64, so that processors with fused multiply-add give the same bits.
		x = math.Abs(x)
		switch {
		case x < 1: // (a+2)x³ − (a+3)x² + 1
			return float64(float64(float64((a+2)*x)-(a+3))*x)*x + 1
		case x < 2: // ax³ − 5ax² + 8ax − 4a
			return (float64(float64(float64((x-5)*x)+8)*x) - 4) * a
		}
		return 0
	}}
}

// precisionBits is the number of fractional bits of a weight: 32 minus the 8 of a pixel and 2 for the
// overshoot of negative lobes.
const precisionBits = 32 - 8 - 2

// A tap holds the weights of one output pixel for the input pixels from, from+1, ….
type tap struct {
	from    int
	weights []int32
}

// Resize returns m at w×h pixels. As in Pillow, the filter is widened by the reduction factor, which
// antialiases, in fixed point, first along rows, then along columns, rounding to 8 bits after each. The
// pixels are those of Pillow up to version 12. Version 13 processes columns first if the height shrinks much
// more than the width, which moves about a fifth of the pixels by one to three levels, by ten at 300×1200 to
// 224×100; networks were trained with the other order. It returns an error if an intermediate image exceeds
// [MaxPixels].
func (m *RGB) Resize(w, h int, f Filter) (*RGB, error) {
	if w > MaxPixels/max(h, m.H) {
		return nil, fmt.Errorf("an image of %d×%d pixels is too large to be resized to %d×%d", m.W, m.H, w, h)
	}
	if w != m.W {
		m = m.rows(taps(m.W, w, f))
	}
	if h != m.H {
		m = m.columns(taps(m.H, h, f))
	}
	return m, nil
}

// ResizeShort resizes the shorter side of m to n pixels and keeps the aspect ratio, rounding the longer side
// down as torchvision does.
func (m *RGB) ResizeShort(n int, f Filter) (*RGB, error) {
	if m.W <= m.H {
		return m.Resize(n, n*m.H/m.W, f)
	}
	return m.Resize(n*m.W/m.H, n, f)
}

func taps(in, out int, f Filter) []tap {
	scale := float64(in) / float64(out)
	widen := max(scale, 1)
	support := f.support * widen
	t := make([]tap, out)
	for i := range t {
		center := float64((float64(i) + 0.5) * scale)
		if f.weight == nil {
			t[i] = tap{min(int(center), in-1), []int32{1 << precisionBits}}
			continue
		}
		from := max(int(center-support+0.5), 0)
		to := min(int(center+support+0.5), in)
		k, sum := make([]float64, to-from), 0.0
		for j := range k {
			k[j] = f.weight(float64((float64(from+j) - center + 0.5) * (1 / widen)))
			sum += k[j]
		}
		t[i] = tap{from, make([]int32, len(k))}
		for j := range k {
			t[i].weights[j] = int32(math.Round(float64(k[j] / sum * (1 << precisionBits))))
		}
	}
	return t
}

func (m *RGB) rows(taps []tap) *RGB {
	out := NewRGB(len(taps), m.H)
	for y := range m.H {
		row := m.Pix[3*y*m.W:]
		for x, t := range taps {
			var r, g, b int32 = 1 << (precisionBits - 1), 1 << (precisionBits - 1), 1 << (precisionBits - 1)
			for i, k := range t.weights {
				p := row[3*(t.from+i):][:3]
				r, g, b = r+k*int32(p[0]), g+k*int32(p[1]), b+k*int32(p[2])
			}
			d := out.Pix[3*(y*out.W+x):][:3]
			for i, v := range [3]int32{r, g, b} {
				d[i] = clip8(int(v >> precisionBits))
			}
		}
	}
	return out
}

func (m *RGB) columns(taps []tap) *RGB {
	out := NewRGB(m.W, len(taps))
	n := 3 * m.W
	sum := make([]int32, n)
	for y, t := range taps {
		for i := range sum {
			sum[i] = 1 << (precisionBits - 1)
		}
		for i, k := range t.weights {
			for j, p := range m.Pix[(t.from+i)*n:][:n] {
				sum[j] += k * int32(p)
			}
		}
		for j, s := range sum {
			out.Pix[y*n+j] = clip8(int(s >> precisionBits))
		}
	}
	return out
}

// ResizePlane resizes one plane of real numbers, such as a map, with the same filters, without rounding.
func ResizePlane(v []float64, w, h, toW, toH int, f Filter) []float64 {
	mid := make([]float64, toW*h)
	for x, t := range taps(w, toW, f) {
		for y := range h {
			for i, k := range t.weights {
				mid[y*toW+x] += float64(float64(k) * v[y*w+t.from+i])
			}
		}
	}
	out := make([]float64, toW*toH)
	const one = 1 << precisionBits
	for y, t := range taps(h, toH, f) {
		for x := range toW {
			sum := 0.0
			for i, k := range t.weights {
				sum += float64(float64(k) * mid[(t.from+i)*toW+x])
			}
			out[y*toW+x] = sum / one / one
		}
	}
	return out
}
