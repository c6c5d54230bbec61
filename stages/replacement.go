package stages

import "math"

// A Replacement says what the points of a curve replace, or insert, in the order of ranks. Its fields are as
// the parameters of the stage give them, with what these leave open.
type Replacement struct {
	By     string    // what stands in the place of a unit, in words: "zero after normalisation"
	Step   int       `json:",omitempty"` // units from one point to the next
	Steps  int       `json:",omitempty"` // without Step: of equal size; 0: a step is the image's longer side
	Limit  int       `json:",omitempty"` // units replaced at the last point; 0: all
	Shares []float64 `json:",omitempty"` // of the units, at the points after the first: instead of the others
}

// Points returns the number of units that are replaced at each point, of n units; longest is the image's
// longer side.
func (r *Replacement) Points(n, longest int) []int {
	out := []int{}
	if len(r.Shares) > 0 {
		out = append(out, 0)
		for _, s := range r.Shares {
			out = append(out, int(float64(n)*s))
		}
		return out
	}
	if r.Limit > 0 {
		n = min(n, r.Limit)
	}
	step := r.Step
	if step == 0 && r.Steps > 0 {
		for k := range r.Steps + 1 {
			out = append(out, int(math.RoundToEven(float64(n)*float64(k)/float64(r.Steps))))
		}
		return out
	}
	if step == 0 {
		step = longest
	}
	for k := 0; k < n; k += step {
		out = append(out, k)
	}
	return append(out, n)
}
