package superpixel

import (
	"math"
	"slices"
)

// Quickshift are the parameters of mode seeking in colour and space.
type Quickshift struct {
	Kernel   float64 // standard deviation of the density's kernel
	Distance float64 // a pixel farther from all of higher density begins a segment
	Ratio    float64 // of colours to space
	Sigma    float64 // of the filter before it, 0 for none
}

// Labels returns the segment of each pixel, row by row, from 0: the pixels from which a path to the nearest
// pixel of higher density ends in the same one. normal draws from the normal distribution, to break ties.
// Vedaldi and Soatto, "Quick Shift and Kernel Methods for Mode Seeking", ECCV 2008.
func (p Quickshift) Labels(m Image, normal func() float64) []uint32 {
	m = m.clone().colours()
	m = m.smoothed(p.Sigma, m.plane()...)
	m.scale(p.Ratio)
	reach := int(math.Ceil(3 * p.Kernel))
	density := m.density(reach, -0.5/(p.Kernel*p.Kernel))
	for i := range density {
		density[i] += float64(1e-5 * normal())
	}
	parent := make([]int, len(density))
	for i := range parent {
		parent[i] = i
		closest := math.Inf(1)
		m.rowsAround(i, reach, func(from, to int) {
			for j := from; j < to; j++ {
				if density[j] <= density[i] {
					continue
				}
				if d := m.apart(i, j); d < closest {
					parent[i], closest = j, d
				}
			}
		})
		if math.Sqrt(closest) > p.Distance {
			parent[i] = i
		}
	}
	return ranked(parent)
}

// density returns the sum of exp(factor·d²) over the pixels of the window around each, row by row. Both
// pixels of a pair get its term at once, which keeps the order of the sums.
func (m Image) density(reach int, factor float64) []float64 {
	sum := make([]float64, m.Height*m.Width)
	for i := range sum {
		sum[i]++ // its own
		m.rowsAround(i, reach, func(from, to int) {
			for j := max(from, i+1); j < to; j++ {
				term := math.Exp(m.apart(i, j) * factor)
				sum[i] += term
				sum[j] += term
			}
		})
	}
	return sum
}

// rowsAround calls use for the pixels from ≤ j < to of each row of the window around pixel i.
func (m Image) rowsAround(i, reach int, use func(from, to int)) {
	y, x := i/m.Width, i%m.Width
	left, right := max(x-reach, 0), min(x+reach+1, m.Width)
	for v := max(y-reach, 0); v < min(y+reach+1, m.Height); v++ {
		use(v*m.Width+left, v*m.Width+right)
	}
}

// apart returns the squared distance of two pixels in colour and space.
func (m Image) apart(i, j int) float64 {
	sum := 0.
	for ch := range m.Channels {
		d := m.Pix[i*m.Channels+ch] - m.Pix[j*m.Channels+ch]
		sum += float64(d * d)
	}
	dy, dx := float64(i/m.Width-j/m.Width), float64(i%m.Width-j%m.Width)
	sum += float64(dy * dy)
	return sum + float64(dx*dx)
}

// ranked numbers pixels by the ranks of the roots that their parents lead to.
func ranked(parent []int) []uint32 {
	roots := make([]int, len(parent))
	for i := range roots {
		r := i
		for parent[r] != r {
			r = parent[r]
		}
		roots[i] = r
	}
	names := slices.Compact(slices.Sorted(slices.Values(roots)))
	out := make([]uint32, len(roots))
	for i, r := range roots {
		k, _ := slices.BinarySearch(names, r)
		out[i] = uint32(k)
	}
	return out
}
