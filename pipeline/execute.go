package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A callOutput is what one call put on the output ports.
type callOutput struct {
	payloads [][]piece // by port
}

type piece struct {
	data []byte
	sub  string
}

// execute runs m's stage for some calls and returns what each of them gave.
// bytes holds payloads of this chunk that no store keeps; nil outside of a job.
func (r *run) execute(ctx context.Context, slot *device.Slot, m *member, calls []int, bytes map[ephemeral][]byte) ([]callOutput, error) {
	n := m.node
	e := &stages.Env{Stage: n.Stage, Ports: m.ports, Calls: make([]stages.Call, len(calls))}
	primary := n.Stage.Primary()
	for i, call := range calls {
		c := &e.Calls[i]
		c.Members = make([][]stages.Member, len(n.Inputs))
		if m.sources != nil {
			c.Source = &m.sources[call]
			c.ID, c.Origin = c.Source.ID, c.Source.ID
		}
	}
	for p := range n.Inputs {
		if !n.Stage.Inputs[p].Type.Items || len(n.Inputs[p].Edges) == 0 {
			continue
		}
		if err := r.fill(ctx, slot, m, p, calls, e, bytes); err != nil {
			return nil, err
		}
		if p != primary {
			continue
		}
		for i := range e.Calls {
			first := e.Calls[i].Members[p][0].Item
			if n.Stage.Relation == stages.Group {
				first.ID = first.Origin
			}
			e.Calls[i].Item = first
		}
	}
	if err := r.invoke(ctx, slot, n, e); err != nil {
		return nil, err
	}
	return collect(n, e)
}

// fill loads the members of calls on one input port.
func (r *run) fill(ctx context.Context, slot *device.Slot, m *member, p int, calls []int, e *stages.Env, bytes map[ephemeral][]byte) error {
	edge := m.Inputs[p].Edges[0]
	from := r.nodes[edge.From.Index]
	ids, err := r.idsOf(from, edge.Port)
	if err != nil {
		return err
	}
	var ask []int32
	var into []*stages.Member
	for i, call := range calls {
		at := m.membersOf(p, call)
		e.Calls[i].Members[p] = make([]stages.Member, len(at))
		for k, pos := range at {
			mm := &e.Calls[i].Members[p][k]
			mm.ID, mm.Origin = ids.ids[pos], ids.origin(int(pos))
			if before := r.inFlight(m, from); before != nil {
				o, ok := before.outcome(int(pos))
				if !ok {
					return fmt.Errorf("%s has no result for the item %q", from.Cell, mm.ID)
				}
				ref := o.Ports[edge.Port][0].Ref
				mm.Digest = ref.Digest
				if mm.Data = bytes[ephemeral{ref.Digest}]; mm.Data != nil {
					continue
				}
				if mm.Data, err = r.loadInFlight(ctx, slot, before, int(pos), edge.Port, ref, bytes); err != nil {
					return err
				}
				continue
			}
			ask = append(ask, pos)
			into = append(into, mm)
		}
	}
	if ask == nil {
		return nil
	}
	data, err := r.load(ctx, slot, from, edge.Port, ask)
	if err != nil {
		return err
	}
	l, err := r.mustListing(ctx, slot, from, edge.Port)
	if err != nil {
		return err
	}
	for i, mm := range into {
		mm.Data = data[i]
		mm.Digest = l.PayloadDigest(int(ask[i]))
	}
	return nil
}

// inFlight returns the member of m's own job that stands for from, nil when from
// has finished.
func (r *run) inFlight(m *member, from *node) *member { return m.in[from] }

// dropped returns references to payloads whose bytes won't be kept, the smallest
// excepted.
func dropped(payloads [][]byte) []store.Ref {
	refs := make([]store.Ref, len(payloads))
	for i, p := range payloads {
		refs[i] = store.Ref{Digest: stages.Sum(p), Len: int64(len(p))}
		if len(p) <= store.InlineMax {
			refs[i].Inline = p
		}
	}
	return refs
}

// loadInFlight gets a payload of a cell of the same job: from the store, or by
// computing it again when it was known and so isn't at hand.
func (r *run) loadInFlight(ctx context.Context, slot *device.Slot, m *member, call, port int, ref store.Ref, bytes map[ephemeral][]byte) ([]byte, error) {
	if ref.Kept() {
		b, err := r.store.Load(ref)
		var miss *store.Miss
		if err == nil || !errors.As(err, &miss) {
			return b, err
		}
	}
	outs, err := r.execute(ctx, slot, m, []int{call}, bytes)
	if err != nil {
		return nil, err
	}
	b := outs[0].payloads[port][0].data
	if stages.Sum(b) != ref.Digest {
		return nil, fmt.Errorf("%s: an item came out different from what was recorded; run again with --force %s", m.Cell, m.Cell)
	}
	return b, nil
}

// invoke calls a stage's Run, with half the batch as long as memory runs out.
func (r *run) invoke(ctx context.Context, slot *device.Slot, n *node, e *stages.Env) error {
	slot, release, err := r.slotFor(ctx, n, slot)
	if err != nil {
		return err
	}
	defer release()
	if n.Stage.Seeded {
		e.Seed = r.plan.Seed
	}
	e.Slot = slot
	e.OnWarn = func(s string) {
		r.emit(Event{Kind: Warning, Cell: n.String(), Step: n.Step.Name, Reason: s})
	}
	for e.Batch = r.Batch; ; e.Batch /= 2 {
		slot.Begin()
		e.Outputs, e.OutFacts = nil, nil
		err := guardRun(ctx, n, e)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, stages.ErrOutOfMemory) || e.Batch == 1:
			return err
		}
		r.emit(Event{Kind: Warning, Cell: n.String(), Step: n.Step.Name, Reason: fmt.Sprintf("%v; it is tried again with batches of %d", err, e.Batch/2)})
		if err := slot.Clear(); err != nil {
			return err
		}
	}
}

func guardRun(ctx context.Context, n *node, e *stages.Env) (err error) {
	defer catch(&err)
	return n.Stage.Run(ctx, n.Params, e)
}

// collect sorts a chunk's outputs by call and port, and refuses a stage that
// kept less or more than its relation promises.
func collect(n *node, e *stages.Env) ([]callOutput, error) {
	outs := make([]callOutput, len(e.Calls))
	for i := range outs {
		outs[i].payloads = make([][]piece, len(n.Stage.Outputs))
	}
	for _, o := range e.Outputs {
		p := portIndex(n.Stage.Outputs, o.Port)
		if p < 0 || o.Call < 0 || o.Call >= len(outs) {
			return nil, &BugError{fmt.Errorf("stage %s puts something on port %q of item %d", n.Stage.Name, o.Port, o.Call)}
		}
		outs[o.Call].payloads[p] = append(outs[o.Call].payloads[p], piece{o.Data, o.ID})
	}
	if n.Stage.Relation == stages.Expand {
		return outs, nil
	}
	for i := range outs {
		for p := range outs[i].payloads {
			if k := len(outs[i].payloads[p]); k != 1 {
				return nil, &BugError{fmt.Errorf("stage %s puts %d payloads on port %q for the item %q", n.Stage.Name, k, n.Stage.Outputs[p].Name, e.Calls[i].ID)}
			}
		}
	}
	return outs, nil
}

func portIndex(ports []stages.Port, name string) int {
	for i := range ports {
		if ports[i].Name == name {
			return i
		}
	}
	return -1
}

// all executes a Whole stage and records its results.
func (r *run) all(ctx context.Context, slot *device.Slot, n *node) error {
	e := &stages.Env{Stage: n.Stage, Ports: map[string][]stages.Data{}, Read: n.sources}
	facts := map[string]stages.Facts{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		for _, edge := range r.live(n, p) {
			from := r.nodes[edge.From.Index]
			f, err := r.factsOf(ctx, slot, from, edge.Port)
			if err != nil {
				return err
			}
			if _, ok := facts[port.Name]; !ok {
				facts[port.Name] = f
			}
			d := r.data(ctx, slot, from, edge, f, false)
			if port.Type.Items {
				ids, err := r.idsOf(from, edge.Port)
				if err != nil {
					return err
				}
				for i := range d.Items {
					d.Items[i].ID, d.Items[i].Origin = ids.ids[i], ids.origin(i)
				}
			}
			e.Ports[port.Name] = append(e.Ports[port.Name], d)
		}
		if len(n.Inputs[p].Edges) > 0 && len(e.Ports[port.Name]) == 0 {
			return fmt.Errorf("everything wired to its input %q failed", port.Name)
		}
	}
	var out map[string]stages.Facts
	if n.Stage.Facts != nil {
		var err error
		if out, err = n.Stage.Facts(n.Params, facts); err != nil {
			return err
		}
	}
	if err := r.invoke(ctx, slot, n, e); err != nil {
		return err
	}
	for i := range n.sources {
		if n.sources[i].File != "" {
			if err := r.store.FileUnchanged(n.sources[i].File, n.digests[i]); err != nil {
				return err
			}
		}
	}
	return r.keepWhole(n, e, out)
}

// keepWhole stores what a Whole stage put on its ports.
func (r *run) keepWhole(n *node, e *stages.Env, facts map[string]stages.Facts) error {
	for port, f := range e.OutFacts {
		if facts == nil {
			facts = map[string]stages.Facts{}
		}
		facts[port] = f
	}
	listings := make([]*store.Listing, len(n.Stage.Outputs))
	for p := range n.Stage.Outputs {
		port := &n.Stage.Outputs[p]
		var payloads [][]byte
		var from []stages.Output
		for _, o := range e.Outputs {
			if o.Port == port.Name {
				payloads = append(payloads, o.Data)
				from = append(from, o)
			}
		}
		if !port.Type.Items && len(payloads) != 1 {
			return &BugError{fmt.Errorf("stage %s puts %d values on port %q", n.Stage.Name, len(payloads), port.Name)}
		}
		refs, err := r.store.Put(payloads)
		if err != nil {
			return err
		}
		l := &store.Listing{Facts: facts[port.Name], IDs: make([]string, len(refs)), Origins: make([]string, len(refs))}
		for i, ref := range refs {
			l.Append(ref)
			l.IDs[i], l.Origins[i] = from[i].ID, cmp.Or(from[i].Origin, from[i].ID)
		}
		listings[p] = l
	}
	r.count(func(s *Summary) { s.Items++ })
	return r.record(n, listings)
}

// whole executes all of a job in this goroutine.
func (r *run) whole(ctx context.Context, slot *device.Slot, j *job) error {
	m := j.members[0]
	if m.Stage.Relation == stages.Whole {
		return r.all(ctx, slot, m.node)
	}
	if err := r.open(ctx, slot, j); err != nil {
		return err
	}
	for _, c := range j.chunks {
		if r.flow(ctx, slot, j, c); m.err != nil {
			return m.err
		}
	}
	return r.close(m)
}
