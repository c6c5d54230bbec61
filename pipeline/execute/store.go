package execute

import (
	"cmp"
	"slices"
	"time"

	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An execution is the result of a task.
type execution struct {
	task    *task
	env     *stages.Env
	outs    []callOutput
	records []store.ItemRecord

	trial  *trial       // of the items to compare with the processor
	first  bool         // of its program
	sample stages.Env   // calls that are compared, or may be,
	made   []callOutput // and their outputs
}

// keep stores the payloads of an execution, and remembers its outcomes for this run.
func (w *Worker) keep(x *execution, bytes *inFlight) error {
	t, outs, began := x.task, x.outs, time.Now()
	m := t.member
	payloads := payloadsOf(outs)
	var refs []store.Ref
	if m.cell.Step.Keep {
		var err error
		if refs, err = w.executor.Store.Put(payloads); err != nil {
			return err
		}
	} else {
		for _, p := range payloads {
			ref := store.Ref{Digest: stages.Sum(p), Len: int64(len(p))}
			if bytes.put(m.cell, ref.Digest, p); len(p) <= store.InlineMax { // only these are kept
				ref.Inline = append([]byte{}, p...)
			}
			refs = append(refs, ref)
		}
	}
	records := make([]store.ItemRecord, len(t.calls))
	for i := range t.calls {
		o := store.ItemOutcome{Ports: make([][]store.SubItem, len(m.cell.Stage.Outputs))}
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
	for _, equal := range t.equal {
		m.known[equal[0]] = m.known[equal[1]]
	}
	x.records, x.env, x.outs = records, nil, nil
	spent := Speed{Calls: len(t.calls), Made: made(outs), Seconds: time.Since(began).Seconds()}
	w.executor.of(m.cell).meter.add(spent)
	return nil
}

// record stores the outcomes of an execution for later runs.
func (w *Worker) record(x *execution) error {
	t, began := x.task, time.Now()
	m := t.member
	for _, call := range t.calls { // results from a file that changed meanwhile aren't stored
		if err := m.id.Sources.Unchanged(call, w.executor.Store.FileUnchanged); err != nil {
			return err
		}
	}
	if err := w.executor.Store.RecordItems(m.group, w.madeBy(m.cell), x.records); err != nil {
		return err
	}
	w.executor.items.Add(int64(len(t.calls)))
	w.executor.of(m.cell).meter.add(Speed{Seconds: time.Since(began).Seconds()})
	return nil
}

// storeWhole stores the outputs of a Whole stage.
func (w *Worker) storeWhole(m *member, e *stages.Env) error {
	outs, err := collect(m.cell, e)
	if err != nil {
		return err
	}
	m.listings = nil
	for p, list := range outs[0] {
		refs, err := w.refsOf(m.cell, e, list)
		if err != nil {
			return err
		}
		facts := m.facts[m.cell.Stage.Outputs[p].Name]
		l := w.executor.Store.NewListing(facts, resolve.ListingParts(m.cell.Cell))
		for i, o := range list {
			l.Append(store.Entry{Ref: refs[i], ID: o.ID, Origin: cmp.Or(o.Origin, o.ID)})
		}
		m.listings = append(m.listings, l)
	}
	w.executor.items.Add(1)
	calls := 0
	for _, p := range m.cell.Stage.Inputs {
		for _, d := range e.Ports[p.Name] {
			if p.Type.Items {
				calls += d.Items.Len()
			}
		}
	}
	w.executor.of(m.cell).meter.add(Speed{Calls: max(calls, 1), Made: made(outs)})
	return nil
}

// refsOf stores the outputs of a port of a Whole stage. An item that the stage passes on keeps its place in
// the store; it is stored again if the store has lost it.
func (w *Worker) refsOf(n *resolve.Cell, e *stages.Env, list []stages.Output) ([]store.Ref, error) {
	refs := make([]store.Ref, len(list))
	var payloads [][]byte
	var at []int // by payload: its position in list
	put := func() error {
		stored, err := w.executor.Store.Put(payloads)
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
			from := n.ID().Live(port)[0]
			l, err := w.executor.Resolver.Listing(w.executor.Resolver.Of(from), from.Port)
			if err != nil {
				return nil, err
			}
			refs[i] = l.At(o.Index).Ref
			if refs[i].Inline != nil || refs[i].Kept() && w.executor.Store.Check(refs[i].Object) == nil {
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

// maxLoaded is approximately how many bytes of passed items are in memory at once.
const maxLoaded = 64 << 20
