package main

import (
	"fmt"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

// shownCauses is how many causes of failed cells are repeated.
const shownCauses = 3

// failed says how many cells failed, and with what end. The first causes are repeated before that, each
// once, since the lines of what was blocked may have hidden them.
func (u *ui) failed(r *pipeline.Result, end string) {
	var causes []string
	cells := map[string][]*plan.Cell{} // by cause
	for c, err := range r.Failures() {
		cause := err.Error()
		if cells[cause] == nil {
			causes = append(causes, cause)
		}
		cells[cause] = append(cells[cause], c)
	}
	for _, cause := range causes[:min(shownCauses, len(causes))] {
		of := cells[cause]
		more := ""
		if len(of) > 1 {
			more = fmt.Sprintf(" and %s more", progress.Cells(len(of)-1))
		}
		u.say("failed: %s%s: %s", of[0], more, cause)
	}
	if n := len(causes) - shownCauses; n > 0 {
		u.say("failed: others, for %d more reasons", n)
	}
	u.say("%s failed, %d blocked%s", progress.Cells(r.Summary.Failed), r.Summary.Blocked, end)
}
