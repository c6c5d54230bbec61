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

// A Fate is how a cell ended.
type Fate int

const (
	NotReached Fate = iota // the run was stopped before
	FromStore
	Executed
	Failed
	Blocked
)

var fates = [...]Fate{cached: FromStore, done: Executed, failed: Failed, blocked: Blocked}

// Fate returns how c ended, and why if it has no results.
func (r *Result) Fate(c *plan.Cell) (Fate, error) {
	n := r.run.nodes[c.Index]
	if n.state < failed {
		return fates[n.state], nil
	}
	return fates[n.state], n.err
}

// OK reports whether c has results.
func (r *Result) OK(c *plan.Cell) bool { return r.run.nodes[c.Index].state.ok() }

// Key returns what c's results lie under in the store.
func (r *Result) Key(c *plan.Cell) stages.Digest { return r.run.nodes[c.Index].key }

// Definition names what was asked of c, without anything computed in it.
func (r *Result) Definition(c *plan.Cell) (stages.Digest, error) {
	return r.run.definition(r.run.nodes[c.Index])
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
		return w.data(n, plan.Edge{From: c, Port: port, Coord: c.Coord})
	case <-ctx.Done():
		return stages.Data{}, context.Cause(ctx)
	}
}
