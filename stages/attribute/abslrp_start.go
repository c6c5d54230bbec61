package attribute

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// fewClasses is the number of classes below which the paper's single pass is often negative everywhere: the
// others start with -1/N each, and those whose scores are near 0 outweigh the target.
const fewClasses = 100

// contrast returns the contrast for a model of some classes: single-pass, two-passes or none. Attention
// reports whether the model has attention layers.
func (p AbsLRPParams) contrast(classes int, attention bool) string {
	switch {
	case p.Contrast != "auto" && p.Contrast != "variant":
		return p.Contrast
	case p.Variant == "official", p.Variant == "official-2024-01" && attention,
		p.Variant == "paper" && p.Contrast == "auto" && (classes < fewClasses || attention):
		return "two-passes"
	}
	return "single-pass"
}

// starts returns the starts of the backward passes of the contrast.
func (p AbsLRPParams) starts(classes int, attention bool) []passStart {
	contrast := p.contrast(classes, attention)
	// The official modules normalise by themselves; the relevance of January 2024 keeps its sums.
	toOne := p.Variant == "paper" || p.Variant == "official-2024-01" && contrast == "two-passes"
	switch contrast {
	case "single-pass":
		return []passStart{absLRPStart{target: 1, others: -1, shared: true}.pass(1, toOne)}
	case "two-passes":
		return []passStart{absLRPStart{target: 1}.pass(1, toOne), absLRPStart{others: 1}.pass(-1, toOne)}
	}
	return []passStart{absLRPStart{target: 1}.pass(1, toOne)}
}

// startsOfExpression returns the start of the only pass of an expression, which has no other classes to be
// contrasted with: contrast: auto is none then.
func (p AbsLRPParams) startsOfExpression() ([]passStart, error) {
	if p.Contrast != "auto" && p.Contrast != "none" {
		return nil, stages.BadField("contrast", "contrast: %s compares a class with the others, and the "+
			"target is an expression", p.Contrast)
	}
	start := absLRPStart{target: 1}.pass(1, p.Variant == "paper")
	return []passStart{{factor: start.factor}}, nil
}

// An absLRPStart is the initial relevance of the classes.
type absLRPStart struct {
	target, others float64 // of the explained class, and of all others together, at most
	shared         bool    // the others divide by the number of all classes, not by their own
}

// pass returns the start of a pass with a sign; toOne scales its result to magnitudes that sum to 1.
func (s absLRPStart) pass(sign float64, toOne bool) passStart {
	return passStart{
		name:   fmt.Sprintf("%g, others %g, shared %t", s.target, s.others, s.shared),
		counts: s.counts,
		factor: passFactor{sign, toOne},
	}
}

// counts writes the initial relevance of each class. For a difference such as 7-3, the others are the one
// subtracted class.
func (s absLRPStart) counts(classes []float32, t program.Target) error {
	each := 0.0
	if n := len(classes); s.shared {
		each = s.others / float64(n)
	} else if n > 1 {
		each = s.others / float64(n-1)
	}
	for i := range classes {
		classes[i] = float32(each)
		if t.Minus >= 0 {
			classes[i] = 0
		}
	}
	if t.Minus >= 0 {
		classes[t.Minus] = float32(s.others)
	}
	classes[t.Class] = float32(s.target)
	return nil
}
