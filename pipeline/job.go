package pipeline

import (
	"context"
	"errors"
	"fmt"
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
