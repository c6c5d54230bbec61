package attribute

import "github.com/runexp/runexp/stages/internal/metric"

// resized returns a map [h,w] at another size: nearest repeats values, bilinear
// is [metric.Enlarge].
func resized(values []float64, h, w, height, width int, how string) []float64 {
	if how != "nearest" {
		return metric.Enlarge(values, h, w, height, width)
	}
	out := make([]float64, height*width)
	for y := range height {
		for x := range width {
			out[y*width+x] = values[y*h/height*w+x*w/width]
		}
	}
	return out
}
