package behaviour

import "math/rand/v2"

// A kind is a behaviour: the hidden units of its gadgets, what they are weighted by, and what the cells of
// its images hold.
type kind struct {
	name   string
	cells  int        // of a gadget
	hidden []reluUnit // shared by all gadgets of a net
	roles  []role     // each place has one of them
}

// A reluUnit is max(0, Σ factor·cell + bias).
type reluUnit struct {
	factors []float64 // by cell
	bias    float64
}

// A role is what a gadget does with the hidden units.
type role struct {
	id int

	// unit returns the weights of the hidden units in a logit, made of one or two random weights.
	unit func(first, second float64) []float64

	// common reports that the logits of both classes have these weights; otherwise the second has their
	// negatives.
	common bool

	// draw returns the values of a gadget's cells.
	draw func(r *rand.Rand) []float64

	// reference are the values of cells that say nothing.
	reference []float64

	// mean are about the means of the hidden units, where the bias has to balance the classes.
	mean []float64

	// intended returns the attribution that XAI-Units' authors expect, given the cells and the gadget's
	// value as a function of them; nil if it is that of Shapley.
	intended func(cells []float64, value func(cells ...float64) float64) []float64
}

// Kinds lists the names of the behaviours.
func Kinds() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

func kindOf(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

// activations returns the values of the hidden units.
func (k *kind) activations(cells []float64) []float64 {
	out := make([]float64, len(k.hidden))
	for m, u := range k.hidden {
		out[m] = max(0, dot(u.factors, cells)+u.bias)
	}
	return out
}

const (
	closes = 2  // how much a gate outweighs what it closes
	absent = 4  // how much more an absent bit counts than a present one
	teeth  = 8  // of a shattered gradient, from 0 to 1
	steep  = 3  // the slope of its teeth, next to the slope 1 of the whole
	levels = 16 // of a continuous feature, from 0 to 1
)

var kinds = []kind{
	{name: "continuous", cells: 1, hidden: signedUnits(), roles: []role{linear}},
	{name: "conflicting", cells: 2, hidden: gatedUnits(), roles: []role{{
		// x counts unless the bit c cancels it.
		unit:      func(w, _ float64) []float64 { return []float64{w, -w, 0, 0} },
		draw:      func(r *rand.Rand) []float64 { return []float64{level(r), bit(r)} },
		reference: []float64{0, 0},
		intended: func(c []float64, f func(...float64) float64) []float64 {
			return []float64{f(c[0], 0), -c[1] * f(c[0], 0)}
		},
	}}},
	{name: "interaction", cells: 2, hidden: gatedUnits(), roles: []role{{
		// x has one weight while the gate is 0, and another one while it is 1.
		unit:      func(w, v float64) []float64 { return []float64{w, -w, v, -v} },
		draw:      func(r *rand.Rand) []float64 { return []float64{level(r), bit(r)} },
		reference: []float64{0, 0},
		intended: func(c []float64, f func(...float64) float64) []float64 {
			return []float64{f(c...), 0}
		},
	}}},
	{name: "pertinent-negatives", cells: 1, hidden: []reluUnit{unitOf(1), unitOf(-1), biased(1, -1)},
		roles: []role{
			{unit: func(w, _ float64) []float64 { return []float64{w, -w, 0} },
				draw: linear.draw, reference: linear.reference},
			{id: 1, unit: func(w, _ float64) []float64 { return []float64{w, 0, absent * w} },
				draw:      func(r *rand.Rand) []float64 { return []float64{bit(r)} },
				reference: []float64{1}, mean: []float64{0.5, 0, 0.5}},
		}},
	{name: "shattered", cells: 1, hidden: toothUnits(), roles: []role{{
		unit: toothWeights,
		draw: func(r *rand.Rand) []float64 {
			return []float64{signed(r, (float64(r.IntN(teeth))+0.5)/teeth)} // between two kinks
		},
		reference: []float64{0},
	}}},
	{name: "uncertainty", cells: 1, hidden: signedUnits(), roles: []role{
		linear,
		{id: 1, unit: linear.unit, common: true, draw: linear.draw, reference: linear.reference},
	}},
	// The three values of Kleene's logic: −1 is false, 1 true, and 0 unknown.
	{name: "not", cells: 1, hidden: signedUnits(), roles: []role{logical(1, func(w float64) []float64 {
		return []float64{-w, w}
	})}},
	{name: "and", cells: 2, hidden: orderUnits(), roles: []role{logical(2, func(w float64) []float64 {
		return []float64{w / 2, -w / 2, w / 2, -w / 2, -w / 2, -w / 2} // (a + b − |a − b|)/2
	})}},
	{name: "or", cells: 2, hidden: orderUnits(), roles: []role{logical(2, func(w float64) []float64 {
		return []float64{w / 2, -w / 2, w / 2, -w / 2, w / 2, w / 2} // (a + b + |a − b|)/2
	})}},
	{name: "xor", cells: 2, hidden: pairUnits(), roles: []role{logical(2, func(w float64) []float64 {
		return []float64{-w / 2, -w / 2, w / 2, w / 2} // (|a − b| − |a + b|)/2
	})}},
}

// linear is the role of a feature that counts in proportion to its value, through two hidden units.
var linear = role{
	unit:      func(w, _ float64) []float64 { return []float64{w, -w} },
	draw:      func(r *rand.Rand) []float64 { return []float64{level(r)} },
	reference: []float64{0},
}

// logical returns the role of a function of truth values.
func logical(cells int, weights func(w float64) []float64) role {
	return role{
		unit: func(w, _ float64) []float64 { return weights(w) },
		draw: func(r *rand.Rand) []float64 {
			out := make([]float64, cells)
			for i := range out {
				out[i] = signed(r, 1)
			}
			return out
		},
		reference: make([]float64, cells),
	}
}

func unitOf(factors ...float64) reluUnit { return reluUnit{factors, 0} }

func biased(bias float64, factors ...float64) reluUnit { return reluUnit{factors, bias} }

// signedUnits are max(0, x) and max(0, −x).
func signedUnits() []reluUnit { return []reluUnit{unitOf(1), unitOf(-1)} }

// gatedUnits are max(0, ±x) where the gate is 0, and then where it is 1.
func gatedUnits() []reluUnit {
	return []reluUnit{unitOf(1, -closes), unitOf(-1, -closes), biased(-closes, 1, closes),
		biased(-closes, -1, closes)}
}

// orderUnits are max(0, ±a), max(0, ±b) and max(0, ±(a − b)), without a kink where a = −b.
func orderUnits() []reluUnit {
	return []reluUnit{unitOf(1, 0), unitOf(-1, 0), unitOf(0, 1), unitOf(0, -1), unitOf(1, -1), unitOf(-1, 1)}
}

// pairUnits are max(0, ±(a + b)) and max(0, ±(a − b)).
func pairUnits() []reluUnit {
	return []reluUnit{unitOf(1, 1), unitOf(-1, -1), unitOf(1, -1), unitOf(-1, 1)}
}

// toothUnits are max(0, x − k/teeth) and max(0, −x − k/teeth) for every tooth.
func toothUnits() (out []reluUnit) {
	for _, side := range []float64{1, -1} {
		for k := range teeth {
			out = append(out, biased(-float64(k)/teeth, side))
		}
	}
	return out
}

// toothWeights make of these an odd function of x, of slope 1 over two teeth: 1 + steep on the first of them,
// 1 − steep on the second.
func toothWeights(w, _ float64) []float64 {
	out := make([]float64, 2*teeth)
	for k := range teeth {
		turn := w * (1 + steep)
		switch {
		case k%2 == 1:
			turn = -2 * steep * w
		case k > 0:
			turn = 2 * steep * w
		}
		out[k], out[teeth+k] = turn, -turn
	}
	return out
}

// level returns a continuous feature, not 0.
func level(r *rand.Rand) float64 { return signed(r, float64(1+r.IntN(levels))/levels) }

func bit(r *rand.Rand) float64 { return float64(r.IntN(2)) }

func signed(r *rand.Rand, x float64) float64 {
	if r.IntN(2) == 0 {
		return -x
	}
	return x
}
