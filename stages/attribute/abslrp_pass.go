package attribute

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages/internal/program"
)

// A pass is one way back of relevance.
type pass struct {
	target, others float64 // what the class starts with, and what all others do together, at most
	sign           float64 // how much the pass counts
	toOne          bool    // scaled to magnitudes that sum to 1
	shared         bool    // the others divide by the number of all classes, not by their own
}

// passes returns the passes of a contrast; attention says whether the model has any.
func (p AbsLRPParams) passes(attention bool) []pass {
	contrast := p.Contrast
	if contrast == "variant" {
		contrast = "single-pass"
		if p.Variant == "official" || p.Variant == "official-2024-01" && attention {
			contrast = "two-passes"
		}
	}
	// The official code's modules scale by themselves; relevance of January keeps its sums.
	toOne := p.Variant == "paper" || p.Variant == "official-2024-01" && contrast == "two-passes"
	switch contrast {
	case "single-pass":
		return []pass{{target: 1, others: -1, sign: 1, shared: true, toOne: toOne}}
	case "two-passes":
		return []pass{{target: 1, sign: 1, toOne: toOne}, {others: 1, sign: -1, toOne: toOne}}
	}
	return []pass{{target: 1, sign: 1, toOne: toOne}}
}

// name is the same for passes that start alike.
func (p pass) name() string {
	return fmt.Sprintf("%g, others %g, shared %t", p.target, p.others, p.shared)
}

// from writes what each class starts with. A target that is set against one class, as
// 7-3, has that one for all others.
func (p pass) from(classes []float32, t program.Target) error {
	each := 0.0
	if n := len(classes); p.shared {
		each = p.others / float64(n)
	} else if n > 1 {
		each = p.others / float64(n-1)
	}
	for i := range classes {
		classes[i] = float32(each)
		if t.Minus >= 0 {
			classes[i] = 0
		}
	}
	if t.Minus >= 0 {
		classes[t.Minus] = float32(p.others)
	}
	classes[t.Class] = float32(p.target)
	return nil
}

// add adds to a map what the pass brought; a map of nothing yet is nil.
func (p pass) add(sum []float64, relevance []float32) []float64 {
	if sum == nil {
		sum = make([]float64, len(relevance))
	}
	factor := p.sign
	if p.toOne {
		total := 1e-9
		for _, v := range relevance {
			total += math.Abs(float64(v))
		}
		factor /= total
	}
	for i, v := range relevance {
		sum[i] += float64(factor * float64(v))
	}
	return sum
}
