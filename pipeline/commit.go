package pipeline

import (
	"fmt"

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
		row, err := m.items.Add(records[i].Key, records[i].ItemOutcome)
		if err != nil {
			return err
		}
		m.known[call] = int32(row + 1)
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
	return r.record(n, func(port int) (*store.Listing, error) {
		l := &store.Listing{Facts: m.facts[n.Stage.Outputs[port].Name]}
		l.Grow(m.count)
		for call := range m.count {
			o, ok, err := m.outcome(call)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, &BugError{fmt.Errorf("%s has no result for item %d", n.Cell, call)}
			}
			for _, p := range o.Ports[port] {
				l.Append(p.Ref)
				if n.Stage.Relation == stages.Expand {
					l.Parents = append(l.Parents, int32(call))
					l.IDs = append(l.IDs, p.ID)
				}
			}
		}
		return l, nil
	})
}

// record stores a cell's results. The listings of its ports are made one after the
// other.
func (r *run) record(n *node, listing func(port int) (*store.Listing, error)) error {
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
	tables := make([]*store.Table, len(n.Stage.Outputs))
	err = r.store.RecordEach(a, func(port int) (*store.Listing, error) {
		l, err := listing(port)
		if err == nil {
			tables[port], err = r.store.Table(l)
		}
		return l, err
	})
	if err != nil {
		return err
	}
	hit, ok := r.store.Lookup(n.key, a.MadeBy)
	if !ok {
		return &BugError{fmt.Errorf("the store forgot %s at once", n.Cell)}
	}
	n.mu.Lock()
	n.hit = hit
	n.listings = tables
	n.mu.Unlock()
	return nil
}
