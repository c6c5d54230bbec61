package attribute

import "github.com/runexp/runexp/stages/internal/metric"

// resized returns a map [h,w] at another size: nearest is [metric.Repeat], bilinear [metric.Enlarge], corners
// [metric.EnlargeCorners].
func resized(values []float64, h, w, height, width int, how string) []float64 {
	switch how {
	case "nearest":
		return metric.Repeat(values, h, w, height, width)
	case "corners":
		return metric.EnlargeCorners(values, h, w, height, width)
	}
	return metric.Enlarge(values, h, w, height, width)
}
