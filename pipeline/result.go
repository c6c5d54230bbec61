package pipeline

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Result gives access to the results of a run, executed or cached. Close it when nothing more is read.
//
// A cell whose State is OK has a key, results in the store, a definition and parameters; each of its output
// ports has items with ids, facts, and payloads.
type Result struct {
	Plan      *plan.Plan
	Summary   Summary
	Forced    []Forced
	Probation execute.Probation

	run *run
}

// Close frees the devices. It must be called once.
func (r *Result) Close() {
	r.run.executor.Close()
}

// State returns the state of c in the run.
func (r *Result) State(c *plan.Cell) schedule.State { return r.run.schedule.State(c) }

// Failures yields the cells that failed, in the plan's order, and why.
func (r *Result) Failures() iter.Seq2[*plan.Cell, error] {
	return func(yield func(*plan.Cell, error) bool) {
		for _, c := range r.Plan.Cells {
			if r.State(c) == schedule.Failed && !yield(c, r.run.errs[c.Index]) {
				return
			}
		}
	}
}

// Key returns the key under which c's results are stored.
func (r *Result) Key(c *plan.Cell) stages.Digest { return r.run.resolver.Identity(c).Key }

// Stored returns the results stored under c's key.
func (r *Result) Stored(c *plan.Cell) store.Hit { return r.run.resolver.Cells[c.Index].Stored() }

// Definition names the task of c, without anything computed.
func (r *Result) Definition(c *plan.Cell) (stages.Digest, error) {
	return r.run.resolver.Definition(c)
}

// Params returns the parameters of c that are part of keys, as a JSON object with sorted names, and behind
// them its seed if that isn't the experiment's.
func (r *Result) Params(c *plan.Cell) []byte {
	b := r.run.resolver.Keys.Params.Encode(nil, c.Stage, c.Params)
	if !c.Stage.Seeded || c.Seed == r.Plan.Seed {
		return b
	}
	b = b[:len(b)-1]
	if len(b) > 1 {
		b = append(b, ',')
	}
	return append(strconv.AppendUint(append(b, `"seed":`...), c.Seed, 10), '}')
}

// IDs returns the ids of the items of c's output port. Cells that have the same items share one list, which
// must not be changed. The error is a [*store.Miss] if the store lost it.
func (r *Result) IDs(c *plan.Cell, port int) ([]string, error) {
	l, err := r.run.resolver.IDs(c, port)
	if err != nil {
		return nil, err
	}
	return l.All(), nil
}

// Facts returns the facts of c's output port. The error is a [*store.Miss] if the store lost them.
func (r *Result) Facts(c *plan.Cell, port int) (stages.Facts, error) {
	l, err := r.run.resolver.Listing(r.run.resolver.Cells[c.Index], port)
	if err != nil {
		return nil, err
	}
	return l.Facts, nil
}

// Forget frees the loaded results of c; reading them again loads them again.
func (r *Result) Forget(c *plan.Cell) { r.run.resolver.Cells[c.Index].Forget() }

// Store returns the store that has the results.
func (r *Result) Store() *store.Store { return r.run.engine.Store }

// Digest names the run: the plan with its remarks, the build, and each cell's key, state and ids of
// sources. Two runs with the same digest have the same results.
func (r *Result) Digest() stages.Digest {
	h := key.NewHasher("result")
	h.Text(r.run.resolver.CompiledBy())
	h.Text(string(r.run.resolved()))
	for _, d := range r.Plan.Remarks() {
		h.Text(d.Msg)
	}
	for _, n := range r.run.resolver.Cells {
		id := n.ID()
		h.Text(fmt.Sprint(n.HasResults()))
		h.Digest(id.Key)
		h.Num(id.Sources.Len())
		h.SourceNames(id.Sources)
	}
	return h.Sum()
}

// Data returns the data on c's output port, by its position.
func (r *Result) Data(ctx context.Context, c *plan.Cell, port int) (d stages.Data, err error) {
	if !r.run.resolver.Cells[c.Index].HasResults() {
		return d, fmt.Errorf("%s has no results", c)
	}
	err = r.run.executor.OnHost(ctx, func(w *execute.Worker) error {
		d, err = w.Data(plan.Edge{From: c, Port: port, Coord: c.Coord})
		return err
	})
	return d, err
}
