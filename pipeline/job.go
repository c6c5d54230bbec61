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
	members  []*member // in topological order
	restores bool      // its one member finished before
	chunks   [][]int   // of calls
	next     int       // chunk to start next
	left     atomic.Int32
	total    int // items to execute
	doneOf   atomic.Int32
	started  bool
	start    time.Time
}

// A member is a cell in a job.
type member struct {
	*node
	joins []join
	facts map[string]stages.Facts  // of output ports
	group stages.Digest            // key of the recipe that item records lie under
	count int                      // calls
	ports map[string][]stages.Data // what Env.Ports holds, without a way to load

	in     map[*node]*member // the members of the job
	cut    bool              // its inputs came out as in an earlier run, whose results are its own
	stored *store.Items      // what earlier runs know of items under this recipe

	mu    sync.Mutex // guards what follows
	items *outcomes
	keys  []stages.Digest // by call; zero until known
	err   error
}

// prepare loads what every chunk of m needs. in gives the members of the same
// job that come before it.
func (r *run) prepare(ctx context.Context, slot *device.Slot, m *member, in map[*node]*member) error {
	return r.mending(ctx, slot, func() error { return r.tryPrepare(ctx, m, in) })
}

func (r *run) tryPrepare(ctx context.Context, m *member, in map[*node]*member) (err error) {
	n := m.node
	m.in = in
	if err := r.makeRecipe(ctx, n); err != nil {
		return err
	}
	facts, err := r.gather(m)
	if err != nil {
		return err
	}
	if m.facts, err = factsOf(n, facts); err != nil {
		return err
	}
	if m.joins, err = r.joins(n); err != nil {
		return err
	}
	if m.count, err = r.countCalls(m); err != nil {
		return err
	}
	m.keys = make([]stages.Digest, m.count)
	m.items = newOutcomes(r.madeBy(n), len(n.Stage.Outputs), m.count)
	m.stored, err = r.store.Items(m.group, r.madeBy(n))
	return err
}

// gather fills in m's ports and the key of its group, and returns the facts of
// its input ports.
func (r *run) gather(m *member) (map[string]stages.Facts, error) {
	n := m.node
	h := newHasher("group")
	h.digest(n.recipe)
	facts := map[string]stages.Facts{}
	m.ports = map[string][]stages.Data{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		edges := r.live(n, p)
		h.num(len(edges))
		for i, e := range edges {
			from := r.nodes[e.From.Index]
			d := stages.Data{Coord: e.Coord}
			if before := m.in[from]; before != nil {
				d.Facts = before.facts[from.Stage.Outputs[e.Port].Name]
			} else {
				l, err := r.listing(from, e.Port)
				if err != nil {
					return nil, err
				}
				d.Facts = l.Facts
				if !port.Type.Items {
					d.Items = []stages.Item{{Digest: l.PayloadDigest(0)}}
					h.digest(d.Items[0].Digest)
				}
			}
			h.coord(e.Coord)
			h.facts(d.Facts)
			if i == 0 {
				facts[port.Name] = d.Facts
			}
			m.ports[port.Name] = append(m.ports[port.Name], d)
		}
	}
	m.group = h.sum()
	return facts, nil
}

// factsOf asks a stage for the facts of its output ports.
func factsOf(n *node, in map[string]stages.Facts) (out map[string]stages.Facts, err error) {
	if n.Stage.Facts == nil {
		return nil, nil
	}
	defer catch(&err)
	return n.Stage.Facts(n.Params, in)
}

// countCalls counts the items that m is called with.
func (r *run) countCalls(m *member) (int, error) {
	primary := m.Stage.Primary()
	if primary < 0 {
		return len(m.sources), nil
	}
	if m.Stage.Relation == stages.Group {
		ids, err := r.idsOf(m.node, 0)
		if err != nil {
			return 0, err
		}
		return ids.len(), nil
	}
	e := m.Inputs[primary].Edges[0]
	from := r.nodes[e.From.Index]
	if before := m.in[from]; before != nil {
		return before.count, nil
	}
	_, items, _ := from.stored().Output(e.Port)
	return items, nil
}

// portsOn returns what m's stage finds on its ports when it runs on slot.
func (r *run) portsOn(ctx context.Context, slot *device.Slot, m *member) map[string][]stages.Data {
	ports := make(map[string][]stages.Data, len(m.ports))
	for p := range m.Inputs {
		port := &m.Stage.Inputs[p]
		data := slices.Clone(m.ports[port.Name])
		if !port.Type.Items {
			for i, e := range r.live(m.node, p) {
				data[i].Load = r.loader(ctx, slot, r.nodes[e.From.Index], e.Port)
			}
		}
		if data != nil {
			ports[port.Name] = data
		}
	}
	return ports
}

// data describes what a Whole stage, or whoever reads results, gets of a port.
func (r *run) data(ctx context.Context, slot *device.Slot, from *node, e Edge) (stages.Data, error) {
	l, err := r.mustListing(ctx, slot, from, e.Port)
	if err != nil {
		return stages.Data{}, err
	}
	d := stages.Data{
		Coord: e.Coord, Facts: l.Facts, Items: make([]stages.Item, l.Len()),
		Load: r.loader(ctx, slot, from, e.Port),
	}
	for i := range d.Items {
		d.Items[i].Digest = l.PayloadDigest(i)
	}
	if !from.Stage.Outputs[e.Port].Type.Items {
		return d, nil
	}
	ids, err := r.mustIDs(ctx, slot, from, e.Port)
	if err != nil {
		return stages.Data{}, err
	}
	for i := range d.Items {
		d.Items[i].ID, d.Items[i].Origin = ids.ids[i], ids.origin(i)
	}
	return d, nil
}

// loader returns a function that loads payloads of a port, and computes what's
// lost of them on slot.
func (r *run) loader(ctx context.Context, slot *device.Slot, from *node, port int) func(int) ([]byte, error) {
	return func(i int) ([]byte, error) {
		b, err := r.load(ctx, slot, from, port, []int32{int32(i)})
		if err != nil {
			return nil, err
		}
		return b[0], nil
	}
}

// membersOf returns the positions, on an input port, of what belongs to a call.
func (m *member) membersOf(port, call int) []int32 {
	if m.joins == nil || m.joins[port] == nil {
		return []int32{int32(call)}
	}
	return m.joins[port][call]
}

// itemKey returns the key of one call, or false while an input in the same job
// isn't known yet.
func (r *run) itemKey(ctx context.Context, slot *device.Slot, m *member, call int) (stages.Digest, bool, error) {
	if m.keys[call] != (stages.Digest{}) {
		return m.keys[call], true, nil
	}
	h := newHasher("item")
	if m.sources != nil {
		h.digest(m.sourceDigest(call))
		if m.Stage.Named {
			h.text(m.sources[call].ID)
		}
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
			if before := m.in[from]; before != nil {
				o, ok := r.outcome(before, int(k))
				if !ok {
					return stages.Digest{}, false, nil
				}
				h.digest(o.Ports[e.Port][0].Ref.Digest)
			} else {
				l, err := r.mustListing(ctx, slot, from, e.Port)
				if err != nil {
					return stages.Digest{}, false, err
				}
				h.digest(l.PayloadDigest(int(k)))
			}
			if m.Stage.Named {
				ids, err := r.mustIDs(ctx, slot, from, e.Port)
				if err != nil {
					return stages.Digest{}, false, err
				}
				h.text(ids.ids[k])
				h.text(ids.origin(int(k)))
			}
		}
	}
	m.keys[call] = h.sum()
	return m.keys[call], true, nil
}

// outcome returns what is known of a call: what this job found, or what earlier
// runs recorded if it is of use.
func (r *run) outcome(m *member, call int) (store.ItemOutcome, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.keys[call]
	o, known, ok := m.items.get(key)
	if known || m.stored == nil {
		return o, ok
	}
	if o, ok = m.stored.Get(key); !ok {
		return o, false
	}
	if !r.usable(m, o) {
		m.items.reject(key)
		return store.ItemOutcome{}, false
	}
	m.items.add(key, o)
	return o, true
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
// chunks. Equal items share a chunk, so that they are computed once. A member
// that can't be prepared fails alone.
func (r *run) open(ctx context.Context, slot *device.Slot, j *job) error {
	in := map[*node]*member{}
	var lead *member // the first that can execute
	for _, m := range j.members {
		in[m.node] = m
		err := r.blocking(m, in)
		if err == nil {
			err = r.prepare(ctx, slot, m, in)
		}
		if err == nil && lead != nil && m.count != lead.count {
			err = &BugError{fmt.Errorf("%s has %d items, %s %d", m.Cell, m.count, lead.Cell, lead.count)}
		}
		if err != nil {
			m.fail(err)
			continue
		}
		if lead == nil {
			lead = m
		}
		if r.force != nil && r.force(m.Cell) && !j.restores {
			m.stored = nil
		}
	}
	if lead == nil {
		return nil
	}
	var todo []int
	twins := map[stages.Digest][]int{}
	for call := range lead.count {
		known, err := r.known(ctx, slot, j, call)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		first := lead.keys[call]
		if len(twins[first]) == 0 {
			todo = append(todo, call)
		}
		twins[first] = append(twins[first], call)
	}
	j.total = 0
	var chunk []int
	for _, call := range todo {
		chunk = append(chunk, twins[lead.keys[call]]...)
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

// known reports whether the outcomes of a call are known for all members of j.
func (r *run) known(ctx context.Context, slot *device.Slot, j *job, call int) (bool, error) {
	for _, m := range j.members {
		if m.failure() != nil {
			continue
		}
		if _, ok, err := r.itemKey(ctx, slot, m, call); err != nil || !ok {
			return false, err
		}
		if _, ok := r.outcome(m, call); !ok {
			return false, nil
		}
	}
	return true, nil
}

// flow takes one chunk through all members of j.
func (r *run) flow(ctx context.Context, slot *device.Slot, j *job, chunk []int) {
	bytes := inFlight{}
	for _, m := range j.members {
		if err := r.step(ctx, slot, m, chunk, bytes); err != nil {
			m.fail(err)
		}
	}
	done := int(j.doneOf.Add(int32(len(chunk))))
	if j.restores {
		return
	}
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

// A blockedError says that a cell can't be executed because another one failed.
type blockedError struct{ by *Cell }

func (e *blockedError) Error() string { return fmt.Sprintf("it needs %s, which failed", e.by) }

// blocking returns a blockedError if a member of the job that m reads has failed.
func (r *run) blocking(m *member, in map[*node]*member) error {
	for _, from := range r.edges(m.node) {
		before := in[from]
		if before == nil || before == m {
			continue
		}
		if err := before.failure(); err != nil {
			return blockedBy(from.Cell, err)
		}
	}
	return nil
}

// blockedBy returns the error of what needs a cell that ended with err: it names
// the cell where the trouble began.
func blockedBy(c *Cell, err error) error {
	var b *blockedError
	if errors.As(err, &b) {
		return b
	}
	return &blockedError{c}
}

// step executes the calls of a chunk that m doesn't know yet.
func (r *run) step(ctx context.Context, slot *device.Slot, m *member, chunk []int, bytes inFlight) error {
	if m.failure() != nil {
		return nil
	}
	if err := r.blocking(m, m.in); err != nil {
		return err
	}
	var calls []int
	seen := map[stages.Digest]bool{}
	for _, call := range chunk {
		key, ok, err := r.itemKey(ctx, slot, m, call)
		if err != nil {
			return err
		}
		if !ok {
			return &BugError{fmt.Errorf("%s has no key for item %d", m.Cell, call)}
		}
		if _, ok := r.outcome(m, call); !ok && !seen[key] {
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

// inFlight holds payloads that live only while their chunk does.
type inFlight map[stages.Digest][]byte

// commit stores what a chunk's execution gave, and remembers it.
func (r *run) commit(m *member, calls []int, outs []callOutput, bytes inFlight) error {
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
		m.items.add(records[i].Key, records[i].ItemOutcome)
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
			o, ok := r.outcome(m, call)
			if !ok {
				return &BugError{fmt.Errorf("%s has no result for item %d", n.Cell, call)}
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
		return &BugError{fmt.Errorf("the store forgot %s at once", n.Cell)}
	}
	n.mu.Lock()
	n.hit = hit
	n.listings = slices.Clone(listings)
	n.mu.Unlock()
	return nil
}
