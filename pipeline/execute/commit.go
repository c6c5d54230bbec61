package execute

import (
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// Commit makes the results of the members that didn't fail. A later member may read an earlier one: its key
// is known only now, and it is looked up.
func (w *Worker) Commit(j *Job) {
	for i, m := range j.members {
		w.guard(m, func() error {
			if i > 0 {
				if err := w.executor.Resolver.MakeKey(m.cell); err != nil {
					return err
				}
				look := w.executor.Resolver.LookUp(m.cell)
				if m.look = &look; look.Found {
					return nil
				}
			}
			return w.commit(m)
		})
		if w.lost != nil { // while it computed lost results again
			m.fail(w.lost)
		}
	}
	if w.lost != nil {
		w.lose(w.lost)
	}
}

// commit makes a member's results from the outcomes of its items and stores them under the cell's key: at
// that moment the cell is done.
func (w *Worker) commit(m *member) error {
	n, r, s := m.cell, w.executor.Resolver, m.cell.Stage
	listings := m.listings
	if s.Relation != stages.Whole {
		var err error
		if listings, err = w.listings(m); err != nil {
			return err
		}
	}
	definition, err := r.Definition(n.Cell)
	if err != nil {
		return err
	}
	ingredients, err := r.Keys.Ingredients(n.ID())
	if err != nil {
		return err
	}
	a := store.Action{
		Key: n.ID().Key, Cell: n.String(), Experiment: r.Plan.Name, Definition: definition,
		Ingredients: ingredients, MadeBy: w.madeBy(n),
	}
	for p := range s.Outputs {
		a.Outputs = append(a.Outputs, store.Output{Port: s.Outputs[p].Name, Dropped: !n.Kept()})
	}
	if err := w.executor.Store.Record(a, listings); err != nil {
		return err
	}
	w.executor.Events.Committed(n, w.executor.of(n).meter.take())
	if w.executor.compares(n) {
		r.Lift(n)
	}
	hit, ok := w.executor.Store.Lookup(a.Key, a.MadeBy)
	if !ok {
		return plan.Bug("the store forgot %s at once", n.Cell)
	}
	n.Take(hit, listings)
	return nil
}

// listings lists the outcomes of all items of a member, by output port.
func (w *Worker) listings(m *member) (listings []*store.Listing, err error) {
	for _, port := range m.cell.Stage.Outputs {
		l := w.executor.Store.NewListing(m.facts[port.Name], resolve.ListingParts(m.cell.Cell))
		listings = append(listings, l)
	}
	for call := range m.calls.Len() {
		o, ok := m.outcome(call)
		if !ok {
			return nil, plan.Bug("%s has no result for item %d", m.cell.Cell, call)
		}
		for port, l := range listings {
			for _, p := range o.Ports[port] {
				l.Append(store.Entry{Ref: p.Ref, Parent: int32(call), ID: p.ID})
			}
		}
	}
	return listings, nil
}
