package metric

import "math"

// An SSIM says how structural similarity is measured.
type SSIM struct {
	Window []float64 // weights along one axis, which sum to 1; the window is their outer product
	Sample bool      // variances are those of a sample, n/(n−1) times the weighted ones
	K1, K2 float64
	Range  float64 // the largest value less the smallest
}

// UniformWindow returns size equal weights.
func UniformWindow(size int) []float64 {
	w := make([]float64, size)
	for i := range w {
		w[i] = 1 / float64(size)
	}
	return w
}

// GaussianWindow returns the weights of a normal distribution with standard deviation sigma, at size places.
func GaussianWindow(size int, sigma float64) []float64 {
	w, sum := make([]float64, size), 0.0
	for i := range w {
		d := float64(i) - float64(size-1)/2
		w[i] = math.Exp(-d * d / (2 * sigma * sigma))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// Of returns the mean structural similarity of two maps over all places where the window is inside: equation
// 13 of Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to structural
// similarity", IEEE TIP 2004. It is NaN where the window is larger than the maps.
func (s SSIM) Of(x, y []float64, height, width int) float64 {
	product := func(a, b []float64) []float64 {
		out := make([]float64, len(a))
		for i := range a {
			out[i] = a[i] * b[i]
		}
		return s.means(out, height, width)
	}
	ux, uy := s.means(x, height, width), s.means(y, height, width)
	xx, yy, xy := product(x, x), product(y, y), product(x, y)
	sample := 1.0
	if n := float64(len(s.Window) * len(s.Window)); s.Sample {
		sample = n / (n - 1)
	}
	c1, c2 := math.Pow(s.K1*s.Range, 2), math.Pow(s.K2*s.Range, 2)
	sum := 0.0
	for i := range ux {
		both, squares := float64(ux[i]*uy[i]), float64(ux[i]*ux[i])+float64(uy[i]*uy[i])
		covariance, variances := sample*(xy[i]-both), sample*(xx[i]+yy[i]-squares)
		sum += (2*both + c1) * (2*covariance + c2) / ((squares + c1) * (variances + c2))
	}
	return sum / float64(len(ux))
}

// means returns the weighted means of all windows inside a map.
func (s SSIM) means(v []float64, height, width int) []float64 {
	n := len(s.Window)
	h, w := max(height-n+1, 0), max(width-n+1, 0)
	rows := make([]float64, height*w)
	for y := range height {
		for x := range w {
			for k, f := range s.Window {
				rows[y*w+x] += float64(f * v[y*width+x+k])
			}
		}
	}
	out := make([]float64, h*w)
	for i := range out {
		for k, f := range s.Window {
			out[i] += float64(f * rows[i+k*w])
		}
	}
	return out
}
