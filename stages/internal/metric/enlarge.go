package metric

import "math"

// Enlarge returns a map of h×w values at height×width by bilinear interpolation, with the centres of pixels
// at halves and the border's values beyond the border: PyTorch's interpolate with align_corners=False, which
// doesn't average where a side shrinks. A map of that size already is returned as it is.
func Enlarge(values []float64, h, w, height, width int) []float64 {
	if h == height && w == width {
		return values
	}
	return interpolate(values, h, w, height, width, between)
}

// EnlargeCorners returns a map of h×w values at height×width by bilinear interpolation that aligns the
// corners of both maps: PyTorch's interpolate with align_corners=True.
func EnlargeCorners(values []float64, h, w, height, width int) []float64 {
	return interpolate(values, h, w, height, width, func(i, from, to int) (first, second int, share float64) {
		at := float64(i*(from-1)) / float64(max(to-1, 1))
		first = min(int(at), from-1)
		return first, min(first+1, from-1), at - float64(first)
	})
}

// Repeat returns a map of h×w values at height×width by repeating values: a pixel has the value of the cell
// that its upper left corner is in. It is PyTorch's interpolate in mode nearest.
func Repeat(values []float64, h, w, height, width int) []float64 {
	out := make([]float64, height*width)
	for y := range height {
		for x := range width {
			out[y*width+x] = values[y*h/height*w+x*w/width]
		}
	}
	return out
}

// interpolate interpolates between the neighbours that place returns for each axis.
func interpolate(values []float64, h, w, height, width int,
	place func(i, from, to int) (first, second int, share float64)) []float64 {
	out := make([]float64, height*width)
	for y := range height {
		top, bottom, down := place(y, h, height)
		for x := range width {
			left, right, across := place(x, w, width)
			upper := mix(values[top*w+left], values[top*w+right], across)
			lower := mix(values[bottom*w+left], values[bottom*w+right], across)
			out[y*width+x] = mix(upper, lower, down)
		}
	}
	return out
}

// between returns the two of from pixels that pixel i of to is between, and its distance from the first.
func between(i, from, to int) (first, second int, share float64) {
	at := math.Max(0, float64((float64(i)+0.5)*float64(from)/float64(to))-0.5)
	first = min(int(at), from-1)
	return first, min(first+1, from-1), at - float64(first)
}

// mix rounds each product separately, also on processors that fuse multiply and add.
func mix(a, b, share float64) float64 { return float64(a*(1-share)) + float64(b*share) }
