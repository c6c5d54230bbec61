package superpixel

import (
	"math"
	"math/big"
)

// smoothed returns m under a Gaussian filter in each channel, which repeats the image mirrored at its border
// and ends at four standard deviations. axes are the axes that it runs along, as lengths and strides.
func (m Image) smoothed(sigma float64, axes ...axis) Image {
	if sigma <= 1e-15 {
		return m.clone()
	}
	weights := gaussian(sigma)
	src := m
	for _, a := range axes {
		dst := Image{m.Height, m.Width, m.Channels, make([]float64, len(m.Pix))}
		line, out := make([]float64, a.length), make([]float64, a.length)
		for from := range src.Pix {
			if from/a.stride%a.length != 0 {
				continue // not the first of a line
			}
			for k := range line {
				line[k] = src.Pix[from+k*a.stride]
			}
			correlate(out, line, weights, mirrored)
			for k, v := range out {
				dst.Pix[from+k*a.stride] = v
			}
		}
		src = dst
	}
	return src
}

// An axis of an array has a length, and its neighbours are a stride apart.
type axis struct{ length, stride int }

// plane returns the two axes of an image.
func (m Image) plane() []axis {
	return []axis{{m.Height, m.Width * m.Channels}, {m.Width, m.Channels}}
}

// gaussian returns the weights of a Gaussian kernel from its centre outwards.
func gaussian(sigma float64) []float64 {
	radius := int(float64(4*sigma) + 0.5)
	all := make([]float64, 2*radius+1)
	for k := range all {
		x := float64(k - radius)
		all[k] = exp(-0.5 / (sigma * sigma) * (x * x))
	}
	sum := pairwise(all)
	half := all[radius:]
	for k := range half {
		half[k] /= sum
	}
	return half
}

// exp returns e to the power of x ≤ 0, correctly rounded: math.Exp differs between processors in the last
// bit, by which pixels of drawings change their segment.
func exp(x float64) float64 {
	const halvings = 12 // after which ten terms of the series are enough
	y := new(big.Float).SetPrec(160).SetFloat64(math.Ldexp(x, -halvings))
	sum, term := big.NewFloat(1).SetPrec(160), big.NewFloat(1).SetPrec(160)
	for k := range 10 {
		term.Quo(term.Mul(term, y), big.NewFloat(float64(k+1)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	v, _ := sum.Float64()
	return v
}

// pairwise returns the sum of values in NumPy's order.
func pairwise(v []float64) (sum float64) {
	n := len(v)
	switch {
	case n < 8:
		for _, x := range v {
			sum += x
		}
		return sum
	case n > 128:
		half := n / 2
		half -= half % 8
		return pairwise(v[:half]) + pairwise(v[half:])
	}
	var r [8]float64
	copy(r[:], v)
	k := 8
	for ; k < n-n%8; k += 8 {
		for j := range r {
			r[j] += v[k+j]
		}
	}
	sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
	for ; k < n; k++ {
		sum += v[k]
	}
	return sum
}

// A border returns the value at a place outside a line.
type border func(line []float64, k int) float64

// mirrored repeats a line mirrored: d c b a | a b c d | d c b a.
func mirrored(line []float64, k int) float64 {
	n := len(line)
	if k %= 2 * n; k < 0 {
		k += 2 * n
	}
	return line[min(k, 2*n-1-k)]
}

// zeros surrounds a line with zeros.
func zeros(line []float64, k int) float64 {
	if k < 0 || k >= len(line) {
		return 0
	}
	return line[k]
}

// correlate writes line under a symmetric kernel, whose weights are given from the centre outwards, into out.
func correlate(out, line, weights []float64, at border) {
	n := len(line)
	for i := range out {
		sum := line[i] * weights[0]
		for d := len(weights) - 1; d > 0; d-- {
			if i >= d && i+d < n {
				sum += float64((line[i-d] + line[i+d]) * weights[d])
			} else {
				sum += float64((at(line, i-d) + at(line, i+d)) * weights[d])
			}
		}
		out[i] = sum
	}
}
