package metric

import "math"

// The functions below are Global Attribution Evaluation, of Vukadin, Afrić, Šilić and Delač, 2024, section
// 3.2, equations 13 to 18. The authors' code adds epsilon to each denominator, with which no result is
// undefined; that of the paper is 0.

// Peak returns the positive part of a map, over its largest value. It is all zero for a map without positive
// values, and all NaN for one that isn't finite.
func Peak(values []float64, epsilon float64) []float64 {
	peak := 0.0
	for _, v := range values {
		peak = max(peak, v-v+v) // NaN for infinities
	}
	out := make([]float64, len(values))
	for i, v := range values {
		if peak != 0 {
			out[i] = max(0, v) / (peak + epsilon)
		}
	}
	return out
}

// Distance returns ‖u − v‖₁ / (‖u‖₁ + ‖v‖₁), in [0,1]: one minus the similarity of equation 13. It is
// 0/epsilon if both are zero.
func Distance(u, v []float64, epsilon float64) float64 {
	difference, sum := 0.0, 0.0
	for i := range u {
		difference += math.Abs(u[i] - v[i])
		sum += math.Abs(u[i]) + math.Abs(v[i])
	}
	return difference / (sum + epsilon)
}

// Worth returns the mean of weights, each counting as much as the map has relevance there: equations 15 and
// 17. Values must not be negative. If the map or the weights have channels and the other has none, the other
// is the same for each channel. It is 0/epsilon if the values are all zero.
func Worth(values, weights []float64, epsilon float64) float64 {
	worth, total := 0.0, 0.0
	for i := range max(len(values), len(weights)) {
		v := values[i%len(values)]
		worth += float64(v * weights[i%len(weights)])
		total += v
	}
	return worth / (total + epsilon)
}

// Robustness returns LC_R of equation 14: how closely a map follows the output along two sequences of masked
// images, from -1 to 1. Each slice has a number for each masked state: the distances of the map from that of
// the unmasked image, and the outputs, which are divided by the unmasked image's. It is 1 − 2·0/epsilon if
// neither differs between the sequences.
func Robustness(morf, lerf, morfOutputs, lerfOutputs []float64, original, epsilon float64) float64 {
	maps, outputs := make([]float64, len(morf)), make([]float64, len(morf))
	for t := range morf {
		maps[t] = morf[t] - lerf[t] // sim_lerf − sim_morf
		outputs[t] = lerfOutputs[t]/(original+epsilon) - morfOutputs[t]/(original+epsilon)
	}
	return 1 - 2*Distance(outputs, maps, epsilon)
}
