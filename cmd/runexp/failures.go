package main

import (
	"fmt"
	"iter"
	"slices"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

// failed says how many cells failed, and with what end. Why they failed is repeated before that, since the
// lines of what was blocked may have hidden it.
func (u *ui) failed(r *pipeline.Result, end string) {
	for _, line := range reasons(r.Failures()) {
		u.say("failed: %s", line)
	}
	u.say("%s failed, %d blocked%s", progress.Cells(r.Summary.Failed), r.Summary.Blocked, end)
}

// shownReasons is how many reasons why cells failed are repeated.
const shownReasons = 3

// reasons returns a line for each of the first reasons, with the first cell that failed for it and the number
// of others, and a line for the cells that failed for further reasons.
func reasons(failures iter.Seq2[*plan.Cell, error]) (lines []string) {
	type reason struct {
		first, text string
		others      int
	}
	var shown []reason
	further := 0
	for c, err := range failures {
		text := err.Error()
		i := slices.IndexFunc(shown, func(r reason) bool { return r.text == text })
		switch {
		case i >= 0:
			shown[i].others++
		case len(shown) < shownReasons:
			shown = append(shown, reason{first: c.String(), text: text})
		default:
			further++
		}
	}
	for _, r := range shown {
		name := r.first
		if r.others > 0 {
			name += fmt.Sprintf(" and %d more", r.others)
		}
		lines = append(lines, name+": "+r.text)
	}
	if further > 0 {
		lines = append(lines, progress.Cells(further)+" more, for other reasons")
	}
	return lines
}
