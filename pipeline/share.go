package pipeline

import (
	"errors"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/stages"
)

// gathers reports whether n needs the items of all shares.
func gathers(n *resolve.Cell) bool {
	for p := range n.Inputs {
		if n.Stage.Inputs[p].Type.Items && len(n.Inputs[p].Edges) > 0 {
			return n.Stage.Relation == stages.Whole
		}
	}
	return false
}

// postponement returns why another run has to execute n, whose inputs have finished, nil if this one does.
func (r *run) postponement(n *resolve.Cell) error {
	if r.engine.Share == nil && !r.engine.Closing || n.HasResults() {
		return nil
	}
	for e := range n.Edges() {
		if r.schedule.State(e.From) == schedule.Postponed {
			return r.errs[e.From.Index]
		}
	}
	if r.engine.Share != nil && gathers(n) {
		return &execute.Postponed{Cell: n.Cell}
	}
	return nil
}

// A Lack is the missing items of a cell whose inputs have results, in a closing run.
type Lack struct {
	Cell  string
	Items int
	// New means that this run made the cell's inputs, so that no share could execute the cell before.
	New bool
}

// Lacks returns the missing items, in the order of the plan.
func (r *Result) Lacks() (list []Lack) {
	// made by this run from the items of all shares, or from such a cell
	fresh := make([]bool, len(r.Plan.Cells))
	for _, n := range r.run.resolver.Cells {
		lack := Lack{Cell: n.String()}
		for e := range n.Edges() {
			lack.New = lack.New || fresh[e.From.Index]
		}
		fresh[n.Index] = lack.New || gathers(n) && r.State(n.Cell) == schedule.Done
		e, ok := errors.AsType[*execute.Postponed](r.run.errs[n.Index])
		if ok && e.Cell == n.Cell && e.Items > 0 {
			lack.Items = e.Items
			list = append(list, lack)
		}
	}
	return list
}
