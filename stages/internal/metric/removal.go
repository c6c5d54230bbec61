package metric

// AreaOver returns the area under a curve by the trapezoidal rule, over the places of its points, divided by
// the width from the first place to the last: the curve's mean height there. It is NaN for places without
// width.
func AreaOver(curve, places []float64) float64 {
	sum := 0.0
	for k := 1; k < len(curve); k++ {
		sum += float64((places[k] - places[k-1]) * (curve[k] + curve[k-1]) / 2)
	}
	if len(curve) < 2 {
		return nan
	}
	return sum / (places[len(places)-1] - places[0])
}

// MeanDrop returns 1/(L+1) Σ_k (curve_0 − curve_k), k from 0 to L: one image's term of the area over the
// perturbation curve of Samek et al., "Evaluating the Visualization of What a Deep Neural Network Has
// Learned", TNNLS 2017, equation 12.
func MeanDrop(curve []float64) float64 {
	sum := 0.0
	for _, y := range curve {
		sum += curve[0] - y
	}
	return sum / float64(len(curve))
}

// MeanDistance returns 1/(L+1) Σ_k (upper_k − lower_k), the mean distance of two curves of equal length.
func MeanDistance(upper, lower []float64) float64 {
	sum := 0.0
	for k, y := range upper {
		sum += y - lower[k]
	}
	return sum / float64(len(upper))
}

// Average returns the mean of values, NaN for none.
func Average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
