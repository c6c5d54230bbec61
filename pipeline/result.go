package pipeline

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// A Result gives access to what a run found, executed or cached. Close it when nothing more is read.
type Result struct {
	Plan    *plan.Plan
	Summary Summary
	Forced  []Forced

	run *run
}

// Close frees the devices. It must be called once.
func (r *Result) Close() {
	for _, s := range r.run.caches {
		s.Trim()
	}
}

// Data returns what c's output port, by its position, holds.
func (r *Result) Data(ctx context.Context, c *plan.Cell, port int) (stages.Data, error) {
	n := r.run.nodes[c.Index]
	if !n.state.ok() {
		return stages.Data{}, fmt.Errorf("%s has no results", c)
	}
	select {
	case slot := <-r.run.host:
		w := &worker{run: r.run, ctx: ctx, slot: slot, home: r.run.host}
		defer w.giveBack()
		return w.data(plan.Edge{From: c, Port: port, Coord: c.Coord})
	case <-ctx.Done():
		return stages.Data{}, context.Cause(ctx)
	}
}
