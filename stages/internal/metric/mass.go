package metric

import "math"

// MassAccuracy returns the share of the values' total that lies inside the mask: R_within / R_total, the
// relevance mass accuracy of Arras, Osman and Samek, "CLEVR-XAI", Information Fusion 2022. Values must not be
// negative. It is NaN if they are all zero, and if one of them is NaN or infinite.
func MassAccuracy(values []float64, mask []uint8) float64 {
	within, total := 0.0, 0.0
	for i, v := range values {
		total += v
		if inside(mask[i]) == 1 {
			within += v
		}
	}
	if math.IsInf(total, 0) {
		return nan
	}
	return within / total
}
