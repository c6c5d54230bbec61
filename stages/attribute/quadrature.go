package attribute

import (
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
)

// quadrature returns the positions on [0,1] where a rule samples the path, and their weights.
//
// The left, right and middle rules cut the path into equal pieces. The trapezoid rule samples both ends with
// half the weight. Published code differs from it in two ways: captum-trapezoid divides by the number of
// samples rather than of pieces, so that its weights sum to (n−1)/n, and linspace-mean weights the ends like
// all other samples.
func quadrature(rule string, steps int) (at, weights []float64) {
	at, weights = make([]float64, steps), make([]float64, steps)
	n := float64(steps)
	for k := range at {
		weights[k] = 1 / n
		switch rule {
		case "left":
			at[k] = float64(k) / n
		case "right":
			at[k] = float64(k+1) / n
		case "middle":
			at[k] = (float64(k) + 0.5) / n
		default:
			at[k] = float64(k) / max(n-1, 1)
		}
	}
	switch rule {
	case "gauss-legendre":
		quad.Legendre{}.FixedLocations(at, weights, 0, 1)
		slices.Reverse(at) // the weights are symmetric
	case "trapezoid":
		for k := range weights {
			weights[k] = 1 / (n - 1)
		}
		fallthrough
	case "captum-trapezoid":
		weights[0] /= 2
		weights[steps-1] /= 2
	}
	return at, weights
}
