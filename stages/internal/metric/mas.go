package metric

import "math"

// The functions below are the metric MAS of Walker, Simon, Chen and Ewetz, "Attribution Quality Metrics with
// Magnitude Alignment", IJCAI 2024, in the order of the authors' code: equations 4 to 6 leave open where to
// clip and stretch. MR is the model response, DR the density response, AP the alignment penalty.

// Monotone normalises a raw response curve to MR. Base and original, the responses to the emptied and to the
// original image, become 0 and 1. Values beyond are clipped, and the curve may only rise (insertion) or fall
// (deletion), from exactly 0 or 1.
//
// defined is false if original and base coincide, or if a value is NaN. MR is then computed as by the
// authors' code: infinities are clipped, NaN is skipped.
func Monotone(raw []float64, base, original float64, p Protocol) (mr []float64, defined bool) {
	mr = make([]float64, len(raw))
	defined = len(raw) > 1 && original != base
	best := start(p)
	for k, y := range raw {
		v := (y - base) / (original - base)
		if math.IsNaN(v) {
			defined = false
		}
		v = min(max(v, 0), 1) // NaN stays NaN
		if p == Insertion && v > best || p == Deletion && v < best {
			best = v
		}
		mr[k] = best
	}
	return mr, defined
}

// MonotoneOf is Monotone with base and original taken from the curve's ends.
func MonotoneOf(raw []float64, p Protocol) (mr []float64, defined bool) {
	if len(raw) == 0 {
		return nil, false
	}
	first, last := raw[0], raw[len(raw)-1]
	if p == Insertion {
		return Monotone(raw, first, last, p)
	}
	return Monotone(raw, last, first, p)
}

// Points returns how many points a curve has that treats step of n pixels at a time: one before the first
// step and one after each. The last step may be smaller.
func Points(n, step int) int { return (n+step-1)/step + 1 }

// DensityResponse returns DR: the share of the map's total that is inserted, or not yet deleted, after each
// step. Values may be negative; DR isn't monotone then. It is NaN beyond its first point if the total is 0.
func DensityResponse(values []float64, order []int, step int, p Protocol) []float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	dr := make([]float64, 1, Points(len(order), step))
	dr[0] = start(p)
	for k := 0; k < len(order); k += step {
		sum := 0.0
		for _, i := range order[k:min(k+step, len(order))] {
			sum += values[i]
		}
		share := sum / total
		if p == Deletion {
			share = -share
		}
		dr = append(dr, dr[len(dr)-1]+share)
	}
	return dr
}

// Penalise returns the magnitude-aligned curve and the penalty AP = |DR − MR|. The curve is MR − AP for
// insertion and MR + AP for deletion, first clipped to [0,1], then stretched so that its smallest and largest
// values are 0 and 1.
//
// defined is false if a value is NaN (the map is zero) or the clipped curve is constant. The curve is then
// the straight line that the authors' code uses instead, whose area is exactly 1/2.
func Penalise(mr, dr []float64, p Protocol) (curve, penalty []float64, defined bool) {
	curve, penalty = make([]float64, len(mr)), make([]float64, len(mr))
	low, high := math.Inf(1), math.Inf(-1)
	defined = true
	for k := range mr {
		penalty[k] = math.Abs(dr[k] - mr[k])
		v := mr[k] - penalty[k]
		if p == Deletion {
			v = mr[k] + penalty[k]
		}
		defined = defined && !math.IsNaN(v)
		curve[k] = min(max(v, 0), 1)
		low, high = min(low, curve[k]), max(high, curve[k])
	}
	defined = defined && high > low
	for k := range curve {
		switch {
		case defined:
			curve[k] = (curve[k] - low) / (high - low)
		case p == Insertion:
			curve[k] = float64(k) / float64(len(curve)-1)
		default:
			curve[k] = 1 - float64(k)/float64(len(curve)-1)
		}
	}
	return curve, penalty, defined
}

func start(p Protocol) float64 {
	if p == Insertion {
		return 0
	}
	return 1
}
