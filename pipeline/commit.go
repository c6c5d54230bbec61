package pipeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An execution is what a task came out as.
type execution struct {
	*task
	env     *stages.Env
	outs    []callOutput
	records []store.ItemRecord

	trial  *trial       // of what is to be compared with the processor
	first  bool         // of its program
	sample stages.Env   // what is compared, or may be: the calls,
	made   []callOutput // and what came of them
}

// keep stores the payloads of an execution, and remembers its outcomes for this run.
func (w *worker) keep(x *execution, bytes *inFlight) error {
	m, t, outs, began := x.member, x.task, x.outs, time.Now()
	payloads := payloadsOf(outs)
	var refs []store.Ref
	if m.Step.Keep {
		var err error
		if refs, err = w.store.Put(payloads); err != nil {
			return err
		}
	} else {
		for _, p := range payloads {
			ref := store.Ref{Digest: stages.Sum(p), Len: int64(len(p))}
			if bytes.put(m.node, ref.Digest, p); len(p) <= store.InlineMax { // the only ones that are kept
				ref.Inline = append([]byte{}, p...)
			}
			refs = append(refs, ref)
		}
	}
	records := make([]store.ItemRecord, len(t.calls))
	for i := range t.calls {
		o := store.ItemOutcome{Ports: make([][]store.SubItem, len(m.Stage.Outputs))}
		for port, list := range outs[i] {
			for _, p := range list {
				o.Ports[port] = append(o.Ports[port], store.SubItem{Ref: refs[0], ID: p.ID})
				refs = refs[1:]
			}
		}
		records[i] = store.ItemRecord{Key: t.keys[i], ItemOutcome: o}
	}
	for i, call := range t.calls {
		m.known[call] = int32(m.items.Add(records[i].ItemOutcome) + 1)
	}
	for _, twin := range t.twins {
		m.known[twin[0]] = m.known[twin[1]]
	}
	x.records, x.env, x.outs = records, nil, nil
	m.meter.add(Speed{Calls: len(t.calls), Made: made(outs), Seconds: time.Since(began).Seconds()})
	return nil
}

// record has later runs find the outcomes of an execution.
func (w *worker) record(x *execution) error {
	m, began := x.member, time.Now()
	for _, call := range x.calls { // what was made of a file that changed meanwhile isn't stored
		if err := m.sources.unchanged(w.store, call); err != nil {
			return err
		}
	}
	if err := w.store.RecordItems(m.group, w.madeBy(m.node), x.records); err != nil {
		return err
	}
	w.items.Add(int64(len(x.calls)))
	m.meter.add(Speed{Seconds: time.Since(began).Seconds()})
	return nil
}

// commitWhole stores what a Whole stage put on its ports.
func (w *worker) commitWhole(m *member, e *stages.Env) error {
	outs, err := collect(m.node, e)
	if err != nil {
		return err
	}
	m.listings = nil
	for p, list := range outs[0] {
		refs, err := w.refsOf(m.node, e, list)
		if err != nil {
			return err
		}
		l := w.store.NewListing(m.facts[m.Stage.Outputs[p].Name], partsOf(m.node))
		for i, o := range list {
			l.Append(store.Entry{Ref: refs[i], ID: o.ID, Origin: cmp.Or(o.Origin, o.ID)})
		}
		m.listings = append(m.listings, l)
	}
	w.items.Add(1)
	calls := 0
	for _, p := range m.Stage.Inputs {
		for _, d := range e.Ports[p.Name] {
			if p.Type.Items {
				calls += d.Items.Len()
			}
		}
	}
	m.meter.add(Speed{Calls: max(calls, 1), Made: made(outs)})
	return nil
}

// partsOf returns what the listings of n's ports hold of their items.
func partsOf(n *node) store.Parts {
	switch n.Stage.Relation {
	case stages.Whole:
		return store.IDs | store.Origins
	case stages.Expand:
		return store.Parents | store.IDs
	}
	return 0
}

// refsOf stores the outputs of a port of a Whole stage. An item that is passed on stays where it lies; it is
// stored here if it lies nowhere.
func (w *worker) refsOf(n *node, e *stages.Env, list []stages.Output) ([]store.Ref, error) {
	refs := make([]store.Ref, len(list))
	var payloads [][]byte
	var at []int // by payload: its position in list
	put := func() error {
		stored, err := w.store.Put(payloads)
		for k, ref := range stored {
			refs[at[k]] = ref
		}
		payloads, at = nil, nil
		return err
	}
	loaded := 0
	for i, o := range list {
		if o.From != "" {
			port := slices.IndexFunc(n.Stage.Inputs, func(p stages.Port) bool { return p.Name == o.From })
			from := w.live(n, port)[0]
			l, err := w.listing(w.nodes[from.From.Index], from.Port)
			if err != nil {
				return nil, err
			}
			refs[i] = l.At(o.Index).Ref
			if refs[i].Inline != nil || refs[i].Kept() && w.store.Check(refs[i].Pack) == nil {
				continue
			}
			if o.Data, err = e.Ports[o.From][0].Load(o.Index); err != nil {
				return nil, err
			}
			loaded += len(o.Data)
		}
		payloads, at = append(payloads, o.Data), append(at, i)
		if loaded > maxLoaded {
			if err := put(); err != nil {
				return nil, err
			}
			loaded = 0
		}
	}
	return refs, put()
}

// maxLoaded is about how many bytes of passed items are in memory at once.
const maxLoaded = 64 << 20

// closeJob makes the results of the members that didn't fail. The key of a later member is known only now
// that the earlier ones have results.
func (w *worker) closeJob(j *job) {
	for i, m := range j.members {
		w.guard(m, func() error {
			if i > 0 {
				if err := w.makeKey(m.node); err != nil {
					return err
				}
				if m.cut = w.lookUp(m.node); m.cut {
					return nil
				}
			}
			return w.close(m)
		})
		if w.lost != nil { // on the way to something that the store lost
			m.fail(w.lost)
		}
	}
	if w.lost != nil {
		w.lose(w.lost)
	}
}

// close makes a member's results of the outcomes of its items and stores them under the cell's key.
func (w *worker) close(m *member) error {
	n := m.node
	listings := m.listings
	if n.Stage.Relation != stages.Whole {
		for port := range n.Stage.Outputs {
			listings = append(listings, w.store.NewListing(m.facts[n.Stage.Outputs[port].Name], partsOf(n)))
		}
		for call := range m.calls.len() {
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
	}
	def, err := w.definition(n)
	if err != nil {
		return err
	}
	list, err := w.ingredients(n)
	if err != nil {
		return err
	}
	a := store.Action{
		Key: n.key, Cell: n.String(), Experiment: w.plan.Name, Definition: def,
		Ingredients: list, MadeBy: w.madeBy(n),
	}
	for p := range n.Stage.Outputs {
		a.Outputs = append(a.Outputs, store.Output{Port: n.Stage.Outputs[p].Name, Dropped: !n.kept()})
	}
	if err := w.store.Record(a, listings); err != nil {
		return err
	}
	w.remember(n)
	w.passed(n)
	hit, ok := w.store.Lookup(n.key, a.MadeBy)
	if !ok {
		return plan.Bug("the store forgot %s at once", n.Cell)
	}
	n.mu.Lock()
	n.has, n.hit = true, hit
	n.listings = listings
	if n.entire = n.entire && n.Stage.Relation == stages.Whole; n.entire {
		n.listings = nil // a share reads its own items of them
	}
	n.mu.Unlock()
	return nil
}
