package superpixel

import "math"

// Zoomed returns m resized by cubic splines, as scikit-image's resize does with order=3, mode="constant" and
// anti_aliasing=True: zeros surround the image, it is smoothed before it shrinks, and no value leaves the
// image's range.
func (m Image) Zoomed(height, width int) Image {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range m.Pix {
		low, high = min(low, v), max(high, v)
	}
	out := m
	if height != m.Height {
		out = out.zoomedAlong(axis{out.Height, out.Width * out.Channels}, height)
		out.Height = height
	}
	if width != m.Width {
		out = out.zoomedAlong(axis{out.Width, out.Channels}, width)
		out.Width = width
	}
	out = out.clone()
	for k, v := range out.Pix {
		out.Pix[k] = min(max(v, low), high)
	}
	return out
}

// zoomedAlong returns the pixels of m with another length of one axis.
func (m Image) zoomedAlong(a axis, length int) Image {
	line, out := make([]float64, a.length), make([]float64, length)
	pix := make([]float64, len(m.Pix)/a.length*length)
	for from := 0; from < len(m.Pix); from += a.length * a.stride {
		to := from / a.length * length
		for lane := range a.stride {
			for k := range line {
				line[k] = m.Pix[from+k*a.stride+lane]
			}
			zoomLine(out, line)
			for k, v := range out {
				pix[to+k*a.stride+lane] = v
			}
		}
	}
	m.Pix = pix
	return m
}

// margin is the number of zeros on each side of a line before a spline is fitted.
const margin = 12

// zoomLine writes the spline through line at the centres of equal parts of it into out.
func zoomLine(out, line []float64) {
	step := float64(len(line)) / float64(len(out))
	padded := make([]float64, len(line)+2*margin)
	copy(padded[margin:], line)
	if step > 1 {
		correlate(padded[margin:margin+len(line)], line, gaussian((step-1)/2), zeros)
	}
	fitSpline(padded)
	for k := range out {
		at := float64((float64(k)+0.5)*step) - 0.5 + margin
		first := math.Floor(at)
		t := at - first
		c := padded[int(first)-1 : int(first)+3]
		u := 1 - t
		out[k] = (float64(c[0]*u*u*u) + float64(c[1]*nearSpline(t)) + float64(c[2]*nearSpline(u)) +
			float64(c[3]*t*t*t)) / 6
	}
}

// nearSpline returns six times the cubic B-spline at a distance up to 1 from its centre.
func nearSpline(t float64) float64 { return 4 - float64(6*t*t) + float64(3*t*t*t) }

// fitSpline replaces values by the coefficients of the cubic spline through them, mirrored at both ends.
func fitSpline(c []float64) {
	pole := math.Sqrt(3) - 2
	n := len(c)
	last := math.Pow(pole, float64(n-1))
	sum, power := c[0]+float64(last*c[n-1]), pole
	for k := 1; k < n-1; k++ {
		sum += float64((power + last*last/power) * c[k])
		power *= pole
	}
	c[0] = sum / (1 - float64(last*last))
	for k := 1; k < n; k++ {
		c[k] += float64(pole * c[k-1])
	}
	c[n-1] = pole / (float64(pole*pole) - 1) * (c[n-1] + float64(pole*c[n-2]))
	for k := n - 2; k >= 0; k-- {
		c[k] = pole * (c[k+1] - c[k])
	}
	for k := range c {
		c[k] *= 6
	}
}

// Nearest returns labels of h×w pixels resized to height × width by nearest neighbours.
func Nearest(labels []uint32, h, w, height, width int) []uint32 {
	place := func(k, from, to int) int { return int((float64(k) + 0.5) * (float64(from) / float64(to))) }
	out := make([]uint32, 0, height*width)
	for y := range height {
		for x := range width {
			out = append(out, labels[place(y, h, height)*w+place(x, w, width)])
		}
	}
	return out
}
