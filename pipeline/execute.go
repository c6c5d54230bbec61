package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
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
// bytes holds payloads of this chunk that no store keeps.
func (r *run) execute(ctx context.Context, slot *device.Slot, m *member, calls []int, bytes inFlight) ([]callOutput, error) {
	n := m.node
	e := &stages.Env{Stage: n.Stage, Ports: r.portsOn(ctx, slot, m), Calls: make([]stages.Call, len(calls))}
	primary := n.Stage.Primary()
	for i, call := range calls {
		c := &e.Calls[i]
		c.Members = make([][]stages.Member, len(n.Inputs))
		if m.sources != nil {
			s := m.sources.list[call]
			c.Source = &s
			c.ID, c.Origin = s.ID, s.ID
			if s.File != "" {
				c.Digest = m.sources.digest(call)
			}
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
	e.Beside = r.beside(ctx, slot, m, calls)
	if err := r.invoke(ctx, slot, n, e); err != nil {
		return nil, err
	}
	return collect(n, e)
}

// fill loads the members of calls on one input port.
func (r *run) fill(ctx context.Context, slot *device.Slot, m *member, p int, calls []int, e *stages.Env, bytes inFlight) error {
	edge := m.Inputs[p].Edges[0]
	from := r.nodes[edge.From.Index]
	ids, err := r.mustIDs(ctx, slot, from, edge.Port)
	if err != nil {
		return err
	}
	var at []int32
	var into []*stages.Member
	for i, call := range calls {
		positions := m.membersOf(p, call)
		members := make([]stages.Member, len(positions))
		e.Calls[i].Members[p] = members
		for k, pos := range positions {
			members[k].ID, members[k].Origin = ids.ids[pos], ids.origin(int(pos))
			at = append(at, pos)
			into = append(into, &members[k])
		}
	}
	if before := m.in[from]; before != nil {
		return r.fillInFlight(ctx, slot, before, edge.Port, at, into, bytes)
	}
	data, err := r.load(ctx, slot, from, edge.Port, at)
	if err != nil {
		return err
	}
	l, err := r.mustListing(ctx, slot, from, edge.Port)
	if err != nil {
		return err
	}
	for i, mm := range into {
		mm.Data = data[i]
		mm.Digest = l.PayloadDigest(int(at[i]))
	}
	return nil
}

// fillInFlight gets payloads of a member of the same job: those that this chunk
// computed; else from the store; else, when they were known and so aren't at hand,
// by computing them again, all at once.
func (r *run) fillInFlight(ctx context.Context, slot *device.Slot, m *member, port int, calls []int32, into []*stages.Member, bytes inFlight) error {
	var again []int
	for i, mm := range into {
		o, ok := m.outcome(int(calls[i]))
		if !ok {
			return plan.Bug("%s has no result for the item %q", m.Cell, mm.ID)
		}
		ref := o.Ports[port][0].Ref
		mm.Digest = ref.Digest
		if mm.Data, ok = bytes[ref.Digest]; ok {
			continue
		}
		var miss *store.Miss
		var err error
		switch mm.Data, err = r.store.Load(ref); {
		case err == nil:
		case errors.As(err, &miss):
			mm.Data = nil
			again = append(again, int(calls[i]))
		default:
			return err
		}
	}
	if again == nil {
		return nil
	}
	outs, err := r.execute(ctx, slot, m, again, bytes)
	if err != nil {
		return err
	}
	for _, o := range outs {
		for _, port := range o.payloads {
			for _, p := range port {
				bytes[stages.Sum(p.data)] = p.data
			}
		}
	}
	for _, mm := range into {
		if mm.Data != nil {
			continue
		}
		var ok bool
		if mm.Data, ok = bytes[mm.Digest]; !ok {
			return fmt.Errorf("%s: the item %q came out different from what was recorded; run again with --force %s", m.Cell, mm.ID, m.Cell)
		}
	}
	return nil
}

// dropped returns references to payloads whose bytes won't be kept, the smallest
// excepted.
func dropped(payloads [][]byte) []store.Ref {
	refs := make([]store.Ref, len(payloads))
	for i, p := range payloads {
		refs[i] = store.Ref{Digest: stages.Sum(p), Len: int64(len(p))}
		if len(p) <= store.InlineMax {
			refs[i].Inline = append([]byte{}, p...)
		}
	}
	return refs
}

// invoke calls a stage's Run, with half the batch as long as memory runs out. The
// cell's later chunks begin with the batch that fitted.
func (r *run) invoke(ctx context.Context, slot *device.Slot, n *node, e *stages.Env) error {
	if n.Stage.Seeded {
		e.Seed = r.plan.Seed
	}
	e.Slot = slot
	var warnings []stages.Warning
	e.OnWarn = func(w stages.Warning) { warnings = append(warnings, w) }
	defer func() { n.addWarnings(warnings) }()
	for e.Batch = cmp.Or(int(n.batch.Load()), r.Batch); ; e.Batch /= 2 {
		e.Outputs, e.OutFacts, warnings = nil, nil, nil
		end := slot.Begin()
		err := guardRun(ctx, n, e)
		end()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, stages.ErrOutOfMemory) || e.Batch <= 1:
			return err
		}
		n.batch.Store(int32(e.Batch / 2))
		r.warn(n.Cell, "%v; it is tried again with batches of %d", err, e.Batch/2)
		if err := slot.Trim(); err != nil {
			return err
		}
	}
}

func guardRun(ctx context.Context, n *node, e *stages.Env) (err error) {
	defer plan.Catch(&err)
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
			return nil, plan.Bug("stage %s puts something on port %q of item %d", n.Stage.Name, o.Port, o.Call)
		}
		outs[o.Call].payloads[p] = append(outs[o.Call].payloads[p], piece{o.Data, o.ID})
	}
	for i := range outs {
		for p := range outs[i].payloads {
			if n.Stage.Relation == stages.Expand {
				if id, twice := repeated(outs[i].payloads[p]); twice {
					return nil, plan.Bug("stage %s makes two items %q of the item %q on port %q", n.Stage.Name, id, e.Calls[i].ID, n.Stage.Outputs[p].Name)
				}
				continue
			}
			if k := len(outs[i].payloads[p]); k != 1 {
				return nil, plan.Bug("stage %s puts %d payloads on port %q for the item %q", n.Stage.Name, k, n.Stage.Outputs[p].Name, e.Calls[i].ID)
			}
		}
	}
	return outs, nil
}

// repeated returns an id that two of an item's children have.
func repeated(children []piece) (id string, twice bool) {
	if len(children) < 2 {
		return "", false
	}
	seen := make(map[string]bool, len(children))
	for _, c := range children {
		if seen[c.sub] {
			return c.sub, true
		}
		seen[c.sub] = true
	}
	return "", false
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
	var read []stages.Source
	if n.sources != nil {
		read = n.sources.list
	}
	e := &stages.Env{Stage: n.Stage, Ports: map[string][]stages.Data{}, Order: r.orderOf(n), Read: read}
	facts := map[string]stages.Facts{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		for i, edge := range r.live(n, p) {
			d, err := r.data(ctx, slot, r.nodes[edge.From.Index], edge)
			if err != nil {
				return err
			}
			if i == 0 {
				facts[port.Name] = d.Facts
			}
			e.Ports[port.Name] = append(e.Ports[port.Name], d)
		}
	}
	out, err := factsOf(n, facts)
	if err != nil {
		return err
	}
	if err := r.invoke(ctx, slot, n, e); err != nil {
		return err
	}
	for i := range read {
		if err := n.sources.unchanged(r.store, i); err != nil {
			return err
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
	for _, o := range e.Outputs {
		if portIndex(n.Stage.Outputs, o.Port) < 0 {
			return plan.Bug("stage %s puts something on port %q, which it doesn't have", n.Stage.Name, o.Port)
		}
	}
	listings := make([]*store.Listing, len(n.Stage.Outputs))
	for p := range n.Stage.Outputs {
		port := &n.Stage.Outputs[p]
		seen := map[string]bool{}
		var payloads [][]byte
		var from []stages.Output
		for _, o := range e.Outputs {
			if o.Port == port.Name {
				if seen[o.ID] && port.Type.Items {
					return plan.Bug("stage %s puts two items %q on port %q", n.Stage.Name, o.ID, port.Name)
				}
				seen[o.ID] = true
				payloads = append(payloads, o.Data)
				from = append(from, o)
			}
		}
		if !port.Type.Items && len(payloads) != 1 {
			return plan.Bug("stage %s puts %d values on port %q", n.Stage.Name, len(payloads), port.Name)
		}
		refs, err := r.store.Put(payloads)
		if err != nil {
			return err
		}
		listings[p] = store.NewListing(facts[port.Name], store.IDs|store.Origins)
		for i, ref := range refs {
			listings[p].Append(store.Entry{Ref: ref, ID: from[i].ID, Origin: cmp.Or(from[i].Origin, from[i].ID)})
		}
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
		r.flow(ctx, slot, j, c, nil)
	}
	if err := m.failure(); err != nil {
		return err
	}
	return r.close(m)
}
