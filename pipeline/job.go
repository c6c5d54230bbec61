package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A job executes one cell, or a cell whose bytes aren't kept together with the
// cells that read them, so that a chunk of items flows through all of them
// before its bytes are dropped.
type job struct {
	members []*member // in topological order
	chunks  [][]int   // of calls
	next    int       // chunk to start next
	left    atomic.Int32
	total   int // items to execute
	doneOf  atomic.Int32
	started bool
	start   time.Time
}

// A member is a cell in a job.
type member struct {
	*node
	joins []join
	facts map[string]stages.Facts // of output ports
	group stages.Digest           // key of the recipe that item records lie under
	count int                     // calls
	ports map[string][]stages.Data

	in     map[*node]*member // the members of the job that come before it
	stored *store.Items      // what earlier runs know of items under this recipe

	mu    sync.Mutex                           // guards what follows
	items map[stages.Digest]*store.ItemOutcome // by item key; nil for what's stored but of no use
	keys  []stages.Digest                      // by call; zero until known
	err   error
}

// prepare loads what every chunk of m needs. in gives the members of the same
// job that come before it.
func (r *run) prepare(ctx context.Context, slot *device.Slot, m *member, in map[*node]*member) error {
	n := m.node
	m.in = in
	if err := r.makeRecipe(ctx, n); err != nil {
		return err
	}
	h := newHasher("group")
	h.digest(n.recipe)
	facts := map[string]stages.Facts{}
	m.ports = map[string][]stages.Data{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		h.num(len(n.Inputs[p].Edges))
		for _, e := range n.Inputs[p].Edges {
			from := r.nodes[e.From.Index]
			var f stages.Facts
			if before := in[from]; before != nil {
				f = before.facts[from.Stage.Outputs[e.Port].Name]
			} else {
				var err error
				if f, err = r.factsOf(ctx, slot, from, e.Port); err != nil {
					return err
				}
				if !port.Type.Items {
					h.digest(from.result(e.Port))
				}
			}
			h.facts(f)
			facts[port.Name] = f
			m.ports[port.Name] = append(m.ports[port.Name], r.data(ctx, slot, from, e, f, port.Type.Items))
		}
	}
	m.group = h.sum()
	if n.Stage.Facts != nil {
		var err error
		func() {
			defer catch(&err)
			m.facts, err = n.Stage.Facts(n.Params, facts)
		}()
		if err != nil {
			return err
		}
	}
	var err error
	if m.joins, err = r.joinsIn(n, in); err != nil {
		return err
	}
	if m.stored, err = r.store.Items(m.group, r.madeBy(n)); err != nil {
		return err
	}
	m.items = map[stages.Digest]*store.ItemOutcome{}
	primary := n.Stage.Primary()
	switch {
	case primary < 0:
		m.count = len(n.sources)
	case n.Stage.Relation == stages.Group:
		ids, err := r.idsOf(n, 0)
		if err != nil {
			return err
		}
		m.count = ids.len()
	default:
		e := n.Inputs[primary].Edges[0]
		from := r.nodes[e.From.Index]
		if before := in[from]; before != nil {
			m.count = before.count
		} else {
			l, err := r.mustListing(ctx, slot, from, e.Port)
			if err != nil {
				return err
			}
			m.count = l.Len()
		}
	}
	m.keys = make([]stages.Digest, m.count)
	return nil
}

// joinsIn is joins for a member whose inputs may be in the same job: those are
// aligned by construction.
func (r *run) joinsIn(n *node, in map[*node]*member) ([]join, error) {
	if len(in) > 0 {
		aligned := true
		for p := range n.Inputs {
			for _, e := range n.Inputs[p].Edges {
				aligned = aligned && (!n.Stage.Inputs[p].Type.Items || r.root(r.nodes[e.From.Index], e.Port) == r.root(n, 0))
			}
		}
		if aligned {
			return make([]join, len(n.Inputs)), nil
		}
	}
	return r.joins(n)
}

// data describes what an edge hands over. Items are listed for Whole stages and
// values; an itemwise stage gets its items chunk by chunk.
func (r *run) data(ctx context.Context, slot *device.Slot, from *node, e Edge, f stages.Facts, itemwise bool) stages.Data {
	d := stages.Data{Coord: e.Coord, Facts: f}
	if itemwise {
		return d
	}
	d.Load = func(i int) ([]byte, error) {
		b, err := r.load(ctx, slot, from, e.Port, []int32{int32(i)})
		if err != nil {
			return nil, err
		}
		return b[0], nil
	}
	l, err := r.mustListing(ctx, slot, from, e.Port)
	if err != nil {
		d.Load = func(int) ([]byte, error) { return nil, err }
		return d
	}
	d.Items = make([]stages.Item, l.Len())
	for i := range d.Items {
		d.Items[i].Digest = l.PayloadDigest(i)
	}
	return d
}

// members returns the positions, on an input port, of what belongs to a call.
func (m *member) membersOf(port, call int) []int32 {
	if m.joins == nil || m.joins[port] == nil {
		return []int32{int32(call)}
	}
	return m.joins[port][call]
}

// itemKey returns the key of one call, or false while an input in the same job
// isn't known yet.
func (r *run) itemKey(m *member, call int, in map[*node]*member) (stages.Digest, bool, error) {
	if m.keys[call] != (stages.Digest{}) {
		return m.keys[call], true, nil
	}
	h := newHasher("item")
	if m.sources != nil {
		h.digest(m.sourceDigest(call))
	}
	for p := range m.Inputs {
		if !m.Stage.Inputs[p].Type.Items || len(m.Inputs[p].Edges) == 0 {
			continue
		}
		e := m.Inputs[p].Edges[0]
		from := r.nodes[e.From.Index]
		at := m.membersOf(p, call)
		h.num(len(at))
		for _, k := range at {
			if before := in[from]; before != nil {
				o, ok := before.outcome(int(k))
				if !ok {
					return stages.Digest{}, false, nil
				}
				h.digest(o.Ports[e.Port][0].Ref.Digest)
				continue
			}
			l, err := r.listing(from, e.Port)
			if err != nil {
				return stages.Digest{}, false, err
			}
			h.digest(l.PayloadDigest(int(k)))
		}
	}
	m.keys[call] = h.sum()
	return m.keys[call], true, nil
}

// outcome returns what is known of a call.
func (m *member) outcome(call int) (store.ItemOutcome, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.keys[call]
	if o, ok := m.items[key]; ok {
		if o == nil {
			return store.ItemOutcome{}, false
		}
		return *o, true
	}
	if m.stored == nil {
		return store.ItemOutcome{}, false
	}
	return m.stored.Get(key)
}

// usable reports whether an outcome was made by the class of device in use, and
// its bytes are where it says, unless they aren't meant to be kept. One cell is
// made by one class.
func (r *run) usable(m *member, o store.ItemOutcome) bool {
	if o.MadeBy != r.madeBy(m.node) || len(o.Ports) != len(m.Stage.Outputs) {
		return false
	}
	if !m.Step.Keep {
		return true
	}
	for _, port := range o.Ports {
		for _, p := range port {
			if !p.Kept() || p.Inline == nil && r.store.Check(p.Pack) != nil {
				return false
			}
		}
	}
	return true
}

// open prepares every member of j and cuts the calls that aren't known into
// chunks. Equal items share a chunk, so that they are computed once.
func (r *run) open(ctx context.Context, slot *device.Slot, j *job) error {
	in := map[*node]*member{}
	for _, m := range j.members {
		if err := r.prepare(ctx, slot, m, in); err != nil {
			return err
		}
		if m.count != j.members[0].count {
			return fmt.Errorf("%d items, but %s has %d", m.count, j.members[0].Cell, j.members[0].count)
		}
		in[m.node] = m
		if r.force != nil && r.force(m.Cell) && m.restored == 0 {
			m.stored = nil
		}
	}
	var todo []int
	twins := map[stages.Digest][]int{}
	for call := range j.members[0].count {
		complete := true
		for _, m := range j.members {
			key, known, err := r.itemKey(m, call, in)
			if err != nil {
				return err
			}
			if !known {
				complete = false
				break
			}
			o, ok := m.outcome(call)
			if ok && !r.usable(m, o) {
				m.mu.Lock()
				m.items[key] = nil
				m.mu.Unlock()
				ok = false
			}
			complete = complete && ok
		}
		if complete {
			continue
		}
		first := j.members[0].keys[call]
		if len(twins[first]) == 0 {
			todo = append(todo, call)
		}
		twins[first] = append(twins[first], call)
	}
	j.total = 0
	var chunk []int
	for _, call := range todo {
		chunk = append(chunk, twins[j.members[0].keys[call]]...)
		if len(chunk) >= r.Chunk {
			j.chunks = append(j.chunks, chunk)
			chunk = nil
		}
	}
	if chunk != nil {
		j.chunks = append(j.chunks, chunk)
	}
	for _, c := range j.chunks {
		j.total += len(c)
	}
	j.left.Store(int32(len(j.chunks)))
	return nil
}

// flow takes one chunk through all members of j.
func (r *run) flow(ctx context.Context, slot *device.Slot, j *job, chunk []int) {
	in := map[*node]*member{}
	bytes := map[ephemeral][]byte{}
	for _, m := range j.members {
		if err := r.step(ctx, slot, m, chunk, in, bytes); err != nil {
			m.fail(err)
		}
		in[m.node] = m
	}
	done := int(j.doneOf.Add(int32(len(chunk))))
	m := j.members[len(j.members)-1]
	r.emit(Event{Kind: Items, Cell: m.String(), Step: m.Step.Name, Done: done, Total: j.total, Device: slot.Device().String()})
}

func (m *member) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
	}
}

func (m *member) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

var errBlocked = errors.New("something it needs failed")

// step executes the calls of a chunk that m doesn't know yet.
func (r *run) step(ctx context.Context, slot *device.Slot, m *member, chunk []int, in map[*node]*member, bytes map[ephemeral][]byte) error {
	if m.failure() != nil {
		return nil
	}
	for p := range m.Inputs {
		for _, e := range m.Inputs[p].Edges {
			if before := in[r.nodes[e.From.Index]]; before != nil && before.failure() != nil {
				return errBlocked
			}
		}
	}
	var calls []int
	seen := map[stages.Digest]bool{}
	for _, call := range chunk {
		key, _, err := r.itemKey(m, call, in)
		if err != nil {
			return err
		}
		if _, ok := m.outcome(call); !ok && !seen[key] {
			seen[key] = true
			calls = append(calls, call)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	outs, err := r.execute(ctx, slot, m, calls, bytes)
	if err != nil {
		return err
	}
	return r.commit(m, calls, outs, bytes)
}

// ephemeral names a payload that lives only while its chunk is in flight.
type ephemeral struct {
	digest stages.Digest
}

// commit stores what a chunk's execution gave, and remembers it.
func (r *run) commit(m *member, calls []int, outs []callOutput, bytes map[ephemeral][]byte) error {
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
		if bytes != nil {
			for i, p := range payloads {
				bytes[ephemeral{refs[i].Digest}] = p
			}
		}
	}
	records := make([]store.ItemRecord, len(calls))
	k := 0
	for i, call := range calls {
		o := store.ItemOutcome{MadeBy: r.madeBy(m.node), Ports: make([][]store.SubItem, len(m.Stage.Outputs))}
		for port := range outs[i].payloads {
			for _, p := range outs[i].payloads[port] {
				o.Ports[port] = append(o.Ports[port], store.SubItem{Ref: refs[k], ID: p.sub})
				k++
			}
		}
		records[i] = store.ItemRecord{Key: m.keys[call], ItemOutcome: o}
	}
	if err := r.recheck(m, calls); err != nil {
		return err
	}
	if err := r.store.RecordItems(m.group, r.madeBy(m.node), records); err != nil {
		return err
	}
	m.mu.Lock()
	for i := range records {
		m.items[records[i].Key] = &records[i].ItemOutcome
	}
	m.mu.Unlock()
	r.count(func(s *Summary) { s.Items += len(calls) })
	return nil
}

// recheck looks again at the files that were read: a result made from a file
// that changed meanwhile isn't stored.
func (r *run) recheck(m *member, calls []int) error {
	for _, call := range calls {
		if call < len(m.sources) && m.sources[call].File != "" {
			if err := r.store.FileUnchanged(m.sources[call].File, m.digests[call]); err != nil {
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
	listings := make([]*store.Listing, len(n.Stage.Outputs))
	for port := range listings {
		l := &store.Listing{Facts: m.facts[n.Stage.Outputs[port].Name]}
		for call := range m.count {
			o, ok := m.outcome(call)
			if !ok {
				return fmt.Errorf("item %d has no result", call)
			}
			for _, p := range o.Ports[port] {
				l.Append(p.Ref)
				if n.Stage.Relation == stages.Expand {
					l.Parents = append(l.Parents, int32(call))
					l.IDs = append(l.IDs, p.ID)
				}
			}
		}
		listings[port] = l
	}
	return r.record(n, listings)
}

func (r *run) record(n *node, listings []*store.Listing) error {
	def, err := r.definition(n)
	if err != nil {
		return err
	}
	a := store.Action{
		Key: n.key, Cell: n.String(), Experiment: r.plan.Name, Definition: def,
		Ingredients: r.ingredients(n), MadeBy: r.madeBy(n),
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
		return fmt.Errorf("the store forgot %s at once", n.Cell)
	}
	n.mu.Lock()
	n.hit = hit
	n.listings = slices.Clone(listings)
	n.mu.Unlock()
	return nil
}
