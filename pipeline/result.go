package pipeline

import (
	"context"
	"fmt"
	"maps"
	"math"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Result gives access to what a run found, executed or cached. Close it when nothing more is read.
//
// What a cell has is read by these methods, of which those below State are for cells whose state is OK: the
// state of a cell; the key that its results are stored under, what the store has there, its definition and parameters;
// and of an output port the items' ids, the facts and, last, the payloads.
type Result struct {
	Plan      *plan.Plan
	Summary   Summary
	Forced    []Forced
	Probation Probation

	run *run
}

// Close frees the devices. It must be called once.
func (r *Result) Close() {
	for _, s := range r.run.caches {
		s.Trim()
	}
}

// State returns how far the run got with c.
func (r *Result) State(c *plan.Cell) schedule.State { return r.run.schedule.State(c) }

// Key returns the key that c's results are stored under.
func (r *Result) Key(c *plan.Cell) stages.Digest { return r.run.nodes[c.Index].key }

// Stored returns what is stored under c's key.
func (r *Result) Stored(c *plan.Cell) store.Hit { return r.run.nodes[c.Index].stored() }

// Definition names what was asked of c, without anything computed in it.
func (r *Result) Definition(c *plan.Cell) (stages.Digest, error) {
	return r.run.definition(r.run.nodes[c.Index])
}

// Params returns those of c's parameters that are part of keys, as a JSON object with sorted names.
func (r *Result) Params(c *plan.Cell) []byte { return r.run.params.encode(nil, c.Stage, c.Params) }

// IDs returns the ids of the items of c's output port. Cells that have the same items share one list, which
// must not be changed. The error is a [*store.Miss] if the store lost it.
func (r *Result) IDs(c *plan.Cell, port int) ([]string, error) {
	l, err := r.run.idsOf(r.run.nodes[c.Index], port)
	if err != nil {
		return nil, err
	}
	return l.ids, nil
}

// Facts returns the facts of c's output port. The error is a [*store.Miss] if the store lost them.
func (r *Result) Facts(c *plan.Cell, port int) (stages.Facts, error) {
	l, err := r.run.listing(r.run.nodes[c.Index], port)
	if err != nil {
		return nil, err
	}
	return l.Facts, nil
}

// Forget frees what was read of c's results; reading them again loads them again.
func (r *Result) Forget(c *plan.Cell) { r.run.nodes[c.Index].forget() }

// Store returns the store that has the results.
func (r *Result) Store() *store.Store { return r.run.store }

// Digest names the run: the plan with its remarks, the build, and each cell's key, state and ids of sources.
// Two runs of one digest have found the same.
func (r *Result) Digest() stages.Digest {
	h := newHasher("result")
	h.text(r.run.compiler())
	h.text(string(r.run.resolved()))
	for _, d := range r.Plan.Remarks() {
		h.text(d.Msg)
	}
	for _, n := range r.run.nodes {
		h.text(fmt.Sprint(n.hasResults()))
		h.digest(n.key)
		h.num(n.sources.len())
		h.sourceNames(n)
	}
	return h.sum()
}

// Data returns what c's output port, by its position, holds.
func (r *Result) Data(ctx context.Context, c *plan.Cell, port int) (stages.Data, error) {
	n := r.run.nodes[c.Index]
	if !n.hasResults() {
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

// Forced tells how a forced cell came out, compared with what was stored.
type Forced struct {
	Cell       string
	Reproduced bool // every payload and fact is the same, bit for bit, or Within
	// Within tells that other hardware or another runtime made what was stored, or a GPU, whose bits may
	// change from run to run, and that the cell is no farther off than Tolerance, that of its stage.
	Within    bool
	Tolerance float64
	Other     string // what made what was stored
	// Deviation is the largest [stages.Deviation]; NaN where items or facts differ.
	Deviation float64
	// Detail says where that is, or what else differs.
	Detail string
}

func (f Forced) String() string {
	of := ""
	if f.Other != "" {
		of = " from " + f.Other
	}
	switch {
	case f.Within:
		return fmt.Sprintf("within tolerance %g of %s (largest deviation %.2g)", f.Tolerance, f.Other,
			f.Deviation)
	case f.Reproduced:
		return "reproduced"
	case math.IsNaN(f.Deviation):
		return "differs" + of + ": " + f.Detail
	case math.IsInf(f.Deviation, 0):
		return "differs" + of + " in its shape, or in what is undefined: " + f.Detail
	}
	return fmt.Sprintf("differs%s with a deviation of %.3g: %s", of, f.Deviation, f.Detail)
}

// reportForced compares a forced cell with what was stored.
func (r *run) reportForced(n *node) {
	if n.reason != forcedReason {
		return
	}
	f := Forced{Cell: n.String(), Reproduced: true}
	for p := range n.Stage.Outputs {
		if was, _, _ := n.before.Output(p); was == n.result(p) {
			continue
		}
		d, detail := r.difference(n, p)
		if f.Reproduced || d > f.Deviation || math.IsNaN(d) && !math.IsNaN(f.Deviation) {
			f.Deviation, f.Detail = d, fmt.Sprintf("port %q%s", n.Stage.Outputs[p].Name, detail)
		}
		f.Reproduced = false
	}
	other := n.before.MadeBy()
	exact := other == n.stored().MadeBy() && r.Devices[0].Class == "cpu"
	if !f.Reproduced && n.Stage.Device && !exact {
		f.Other, f.Tolerance = other, n.Stage.Tolerance
		f.Within = f.Deviation <= f.Tolerance
		f.Reproduced = f.Within
	}
	r.forced = append(r.forced, f)
}

// difference returns how far a port that came out different is off, and where, or NaN and why that can't be
// told.
func (r *run) difference(n *node, port int) (largest float64, where string) {
	was, err := r.store.Listing(*n.before, port)
	if err != nil {
		return math.NaN(), ": " + err.Error()
	}
	is, err := r.listing(n, port)
	if err != nil {
		return math.NaN(), ": " + err.Error()
	}
	if was.Len() != is.Len() {
		return math.NaN(), fmt.Sprintf(" has %d items, had %d", is.Len(), was.Len())
	}
	if !maps.Equal(was.Facts, is.Facts) {
		return math.NaN(), " has other facts"
	}
	largest = math.NaN()
	for i := range is.Len() {
		before, now := was.At(i), is.At(i)
		if before.Digest == now.Digest {
			continue
		}
		at := ""
		if n.Stage.Outputs[port].Type.Items {
			at = fmt.Sprintf(", item %d of %d", i+1, is.Len())
		}
		old, err := r.store.Load(before.Ref)
		if err != nil {
			return math.NaN(), at + ": " + err.Error()
		}
		b, err := r.store.Load(now.Ref)
		if err != nil {
			return math.NaN(), at + ": " + err.Error()
		}
		if d := stages.Deviation(n.Stage.Outputs[port].Type, b, old); !(d <= largest) {
			largest, where = d, at
		}
	}
	return largest, where
}
