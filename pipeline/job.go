package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A job executes one cell, or a cell whose bytes aren't kept together with the
// cells that read them, so that a chunk of items flows through all of them
// before its bytes are dropped.
type job struct {
	members  []*member // in topological order
	restores bool      // its one member finished before
	chunks   [][]int32 // of calls
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
	joins []*join
	facts map[string]stages.Facts  // of output ports
	group stages.Digest            // key of the recipe that item records lie under
	count int                      // calls
	ports map[string][]stages.Data // what Env.Ports holds, without a way to load

	in     map[*node]*member // the members of the job
	cut    bool              // its inputs came out as in an earlier run, whose results are its own
	stored *store.Items      // what earlier runs know of items under this recipe
	items  *store.Outcomes   // what this job computed
	known  []int32           // by call: its row in items plus one, minus that of stored, or 0

	mu  sync.Mutex // guards what follows
	err error
}

// membersOf returns the positions, on an input port, of what belongs to a call.
func (m *member) membersOf(port, call int) []int32 {
	if m.joins == nil || m.joins[port] == nil {
		return []int32{int32(call)}
	}
	return m.joins[port].of(call)
}

// itemKey returns the key of one call, or false while an input in the same job
// isn't known yet.
func (r *run) itemKey(ctx context.Context, slot *device.Slot, m *member, call int) (stages.Digest, bool, error) {
	h := newHasher("item")
	if m.sources != nil {
		h.digest(m.sources.digest(call))
		if m.Stage.Named {
			h.text(m.sources.list[call].ID)
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
				o, ok := before.outcome(int(k))
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
	return h.sum(), true, nil
}

// outcome returns what find has found of a call.
func (m *member) outcome(call int) (o store.ItemOutcome, ok bool) {
	switch row := int(m.known[call]); {
	case row > 0:
		return m.items.At(row - 1), true
	case row < 0:
		return m.stored.At(-row - 1), true
	}
	return o, false
}

// find looks for what is known of a call with a key: what earlier runs recorded if
// it is of use.
func (r *run) find(m *member, call int, key stages.Digest) bool {
	if m.known[call] != 0 {
		return true
	}
	if m.stored == nil {
		return false
	}
	row := m.stored.Find(key)
	if row < 0 || !r.usable(m, m.stored.At(row)) {
		return false
	}
	m.known[call] = int32(-row - 1)
	return true
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
			err = plan.Bug("%s has %d items, %s %d", m.Cell, m.count, lead.Cell, lead.count)
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
	if err := r.chunk(ctx, slot, j, lead); err != nil {
		return err
	}
	for _, c := range j.chunks {
		j.total += len(c)
	}
	j.left.Store(int32(len(j.chunks)))
	return nil
}

// chunk cuts the calls that aren't known into chunks, equal ones together.
func (r *run) chunk(ctx context.Context, slot *device.Slot, j *job, lead *member) error {
	var todo []int32
	seen := map[stages.Digest]int32{} // calls by lead's key
	twins := map[int32]int32{}
	for call := range lead.count {
		key, known, err := r.allKnown(ctx, slot, j, call)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		todo = append(todo, int32(call))
		if first, ok := seen[key]; ok {
			twins[int32(call)] = first
		} else {
			seen[key] = int32(call)
		}
	}
	first := func(call int32) int32 {
		if f, ok := twins[call]; ok {
			return f
		}
		return call
	}
	if len(twins) > 0 {
		slices.SortStableFunc(todo, func(a, b int32) int { return cmp.Compare(first(a), first(b)) })
	}
	size := r.Chunk
	if size == 0 && len(todo) > 0 {
		// As few rounds as chunks of 16 make, and in each a chunk for every worker.
		workers := 1
		if j.device() {
			workers = len(r.Devices)
		}
		rounds := (len(todo)-1)/(16*workers) + 1
		size = (len(todo)-1)/(rounds*workers) + 1
	}
	from := 0
	for i := range todo {
		if last := i == len(todo)-1; last || i+1-from >= size && first(todo[i]) != first(todo[i+1]) {
			j.chunks = append(j.chunks, todo[from:i+1])
			from = i + 1
		}
	}
	return nil
}

// allKnown reports whether the outcomes of a call are known for all members of j.
// It returns the call's key for the first of them.
func (r *run) allKnown(ctx context.Context, slot *device.Slot, j *job, call int) (first stages.Digest, known bool, err error) {
	for _, m := range j.members {
		if m.failure() != nil {
			continue
		}
		key, ok, err := r.itemKey(ctx, slot, m, call)
		if first == (stages.Digest{}) {
			first = key
		}
		if err != nil || !ok {
			return first, false, err
		}
		if !r.find(m, call, key) {
			return first, false, nil
		}
	}
	return first, true, nil
}

// flow takes one chunk through all members of j. It calls computed when it needs the
// slot no more and has only to store what came out.
func (r *run) flow(ctx context.Context, slot *device.Slot, j *job, chunk []int32, computed func()) {
	bytes := inFlight{}
	for i, m := range j.members {
		var last func()
		if i == len(j.members)-1 {
			last = computed
		}
		if err := r.step(ctx, slot, m, chunk, bytes, last); err != nil {
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
type blockedError struct{ by *plan.Cell }

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
func blockedBy(c *plan.Cell, err error) error {
	var b *blockedError
	if errors.As(err, &b) {
		return b
	}
	return &blockedError{c}
}

// step executes the calls of a chunk that m doesn't know yet. computed, unless it's
// nil, is called before what came out is stored.
func (r *run) step(ctx context.Context, slot *device.Slot, m *member, chunk []int32, bytes inFlight, computed func()) error {
	if m.failure() != nil {
		return nil
	}
	if err := r.blocking(m, m.in); err != nil {
		return err
	}
	var calls []int
	var keys []stages.Digest
	twins := map[int]int{} // by call: one with the same key
	first := map[stages.Digest]int{}
	for _, c := range chunk {
		call := int(c)
		if m.known[call] != 0 {
			continue
		}
		key, ok, err := r.itemKey(ctx, slot, m, call)
		if err != nil {
			return err
		}
		if !ok {
			return plan.Bug("%s has no key for item %d", m.Cell, call)
		}
		if r.find(m, call, key) {
			continue
		}
		if twin, ok := first[key]; ok {
			twins[call] = twin
			continue
		}
		first[key] = call
		calls, keys = append(calls, call), append(keys, key)
	}
	if len(calls) == 0 {
		return nil
	}
	outs, err := r.execute(ctx, slot, m, calls, bytes)
	if err != nil {
		return err
	}
	if computed != nil {
		computed()
	}
	if err := r.commit(m, calls, keys, outs, bytes); err != nil {
		return err
	}
	for call, twin := range twins {
		m.known[call] = m.known[twin]
	}
	return nil
}

// inFlight holds payloads that live only while their chunk does.
type inFlight map[stages.Digest][]byte
