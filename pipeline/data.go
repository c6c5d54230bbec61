package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc/panics"
)

// catch turns a panic of the deferring function into an error that carries the
// stack: a bug of one stage is that stage's failure.
func catch(err *error) {
	if v := recover(); v != nil {
		r := panics.NewRecovered(2, v)
		*err = &BugError{Err: r.AsError()}
	}
}

// A BugError is a panic inside a stage or the engine.
type BugError struct{ Err error }

func (e *BugError) Error() string { return fmt.Sprintf("a bug in runexp: %v", e.Err) }
func (e *BugError) Unwrap() error { return e.Err }

// factsOf returns the facts of n's port; n must have finished well.
func (r *run) factsOf(ctx context.Context, slot *device.Slot, n *node, port int) (stages.Facts, error) {
	l, err := r.mustListing(ctx, slot, n, port)
	if err != nil {
		return nil, err
	}
	return l.Facts, nil
}

// mustListing returns the items of n's port, executing n again if what the
// store says of them can't be read any more.
func (r *run) mustListing(ctx context.Context, slot *device.Slot, n *node, port int) (*store.Listing, error) {
	l, err := r.listing(n, port)
	if err == nil {
		return l, nil
	}
	var m *store.Miss
	if !errors.As(err, &m) {
		return nil, err
	}
	if err := r.restore(ctx, slot, n, m); err != nil {
		return nil, err
	}
	return r.listing(n, port)
}

// load returns payloads of n's port by position. What the store lost or what
// was altered there is computed again.
func (r *run) load(ctx context.Context, slot *device.Slot, n *node, port int, at []int32) ([][]byte, error) {
	out := make([][]byte, len(at))
	for attempt := 0; ; attempt++ {
		l, err := r.mustListing(ctx, slot, n, port)
		if err != nil {
			return nil, err
		}
		var lost []int32
		var miss *store.Miss
		for i, k := range at {
			if out[i] != nil {
				continue
			}
			b, err := r.store.Load(l.Ref(int(k)))
			switch {
			case err == nil:
				out[i] = b
			case errors.As(err, &miss):
				lost = append(lost, k)
			default:
				return nil, err
			}
		}
		if lost == nil {
			return out, nil
		}
		if !n.Step.Keep && n.Stage.Relation != stages.Whole {
			again, err := r.regenerate(ctx, slot, n, port, lost)
			if err != nil {
				return nil, err
			}
			for i, k := range at {
				if out[i] == nil {
					out[i] = again[k]
				}
			}
			return out, nil
		}
		if attempt == 2 {
			return nil, fmt.Errorf("%s: %w, and computing it again didn't help", n.Cell, miss)
		}
		if err := r.restore(ctx, slot, n, miss); err != nil {
			return nil, err
		}
	}
}

// restore executes a finished cell again, because some of its results are gone.
// What is still there isn't computed a second time.
func (r *run) restore(ctx context.Context, slot *device.Slot, n *node, why *store.Miss) error {
	n.restoring.Lock()
	defer n.restoring.Unlock()
	if n.restored >= 2 {
		return fmt.Errorf("%s: %w", n.Cell, why)
	}
	before := &node{hit: n.hit}
	n.restored++
	r.emit(Event{Kind: Warning, Cell: n.String(), Step: n.Step.Name, Reason: fmt.Sprintf("%v; it is computed again", why)})
	n.forget()
	j := &job{members: []*member{{node: n}}}
	if err := r.whole(ctx, slot, j); err != nil {
		return err
	}
	for p := range n.Stage.Outputs {
		if before.result(p) != n.result(p) {
			return fmt.Errorf("%s: its port %q came out different from what was recorded; run again with --force %s", n.Cell, n.Stage.Outputs[p].Name, n.Cell)
		}
	}
	r.count(func(s *Summary) { s.Restored++ })
	return nil
}

// regenerate computes items of a cell whose bytes aren't kept. It returns them by
// position.
func (r *run) regenerate(ctx context.Context, slot *device.Slot, n *node, port int, at []int32) (map[int32][]byte, error) {
	l, err := r.mustListing(ctx, slot, n, port)
	if err != nil {
		return nil, err
	}
	slot, release, err := r.slotFor(ctx, n, slot)
	if err != nil {
		return nil, err
	}
	defer release()
	m := &member{node: n}
	if err := r.prepare(ctx, slot, m, nil); err != nil {
		return nil, err
	}
	calls := make([]int, 0, len(at))
	last := int32(-1)
	for _, k := range at {
		c := k
		if l.Parents != nil {
			c = l.Parents[k]
		}
		if c != last {
			calls = append(calls, int(c))
			last = c
		}
	}
	outs, err := r.execute(ctx, slot, m, calls, nil)
	if err != nil {
		return nil, err
	}
	found := map[int32][]byte{}
	for i, c := range calls {
		first := int32(c)
		if l.Parents != nil {
			first = int32(slices.Index(l.Parents, first))
		}
		for k, b := range outs[i].payloads[port] {
			found[first+int32(k)] = b.data
		}
	}
	for _, k := range at {
		b, ok := found[k]
		if !ok || stages.Sum(b) != l.PayloadDigest(int(k)) {
			return nil, fmt.Errorf("%s: an item of port %q came out different from what was recorded; run again with --force %s", n.Cell, n.Stage.Outputs[port].Name, n.Cell)
		}
	}
	return found, nil
}
