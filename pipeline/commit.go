package pipeline

import (
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// commit stores what a chunk's execution gave, and remembers it.
func (r *run) commit(m *member, calls []int, keys []stages.Digest, outs []callOutput, bytes inFlight) error {
	var payloads [][]byte
	for i := range outs {
		for _, port := range outs[i].payloads {
			for _, p := range port {
				payloads = append(payloads, p.data)
			}
		}
	}
	var refs []store.Ref
	var err error
	if m.Step.Keep {
		refs, err = r.store.Put(payloads)
		if err != nil {
			return err
		}
	} else {
		refs = dropped(payloads)
		for i, p := range payloads {
			bytes[refs[i].Digest] = p
		}
	}
	records := make([]store.ItemRecord, len(calls))
	k := 0
	for i := range calls {
		o := store.ItemOutcome{MadeBy: r.madeBy(m.node), Ports: make([][]store.SubItem, len(m.Stage.Outputs))}
		for port := range outs[i].payloads {
			for _, p := range outs[i].payloads[port] {
				o.Ports[port] = append(o.Ports[port], store.SubItem{Ref: refs[k], ID: p.sub})
				k++
			}
		}
		records[i] = store.ItemRecord{Key: keys[i], ItemOutcome: o}
	}
	if err := r.recheck(m, calls); err != nil {
		return err
	}
	if err := r.store.RecordItems(m.group, r.madeBy(m.node), records); err != nil {
		return err
	}
	for i, call := range calls {
		m.known[call] = int32(m.items.Add(records[i].ItemOutcome) + 1)
	}
	r.count(func(s *Summary) { s.Items += len(calls) })
	return nil
}

// recheck looks again at the files that were read: a result made from a file
// that changed meanwhile isn't stored.
func (r *run) recheck(m *member, calls []int) error {
	for _, call := range calls {
		if call < m.sources.len() {
			if err := m.sources.unchanged(r.store, call); err != nil {
				return err
			}
		}
	}
	return nil
}

// close turns the outcomes of a member's items into its results and stores them
// under the cell's key.
func (r *run) close(m *member) error {
	n := m.node
	var parts store.Parts
	if n.Stage.Relation == stages.Expand {
		parts = store.Parents | store.IDs
	}
	listings := make([]*store.Listing, len(n.Stage.Outputs))
	for port := range listings {
		listings[port] = store.NewListing(m.facts[n.Stage.Outputs[port].Name], parts)
	}
	for call := range m.count {
		o, ok := m.outcome(call)
		if !ok {
			return plan.Bug("%s has no result for item %d", n.Cell, call)
		}
		for port, l := range listings {
			for _, p := range o.Ports[port] {
				l.Append(store.Entry{Ref: p.Ref, Parent: int32(call), ID: p.ID})
			}
		}
	}
	return r.record(n, listings)
}

// record stores a cell's results, by output port.
func (r *run) record(n *node, listings []*store.Listing) error {
	def, err := r.definition(n)
	if err != nil {
		return err
	}
	ingredients, err := r.ingredients(n)
	if err != nil {
		return err
	}
	a := store.Action{
		Key: n.key, Cell: n.String(), Experiment: r.plan.Name, Definition: def,
		Ingredients: ingredients, MadeBy: r.madeBy(n),
	}
	for p := range n.Stage.Outputs {
		keep := n.Step.Keep || n.Stage.Relation == stages.Whole
		a.Outputs = append(a.Outputs, store.Output{Port: n.Stage.Outputs[p].Name, Dropped: !keep})
	}
	if err := r.store.Record(a, listings); err != nil {
		return err
	}
	hit, ok := r.store.Lookup(n.key, a.MadeBy)
	if !ok {
		return plan.Bug("the store forgot %s at once", n.Cell)
	}
	n.mu.Lock()
	n.hit = hit
	n.listings = listings
	n.mu.Unlock()
	return nil
}
