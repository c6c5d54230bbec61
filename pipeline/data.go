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

// mustListing returns the items of n's port.
func (r *run) mustListing(ctx context.Context, slot *device.Slot, n *node, port int) (l *store.Listing, err error) {
	err = r.mending(ctx, slot, func() error {
		l, err = r.listing(n, port)
		return err
	})
	return l, err
}

// mustIDs returns the names of the items of n's port.
func (r *run) mustIDs(ctx context.Context, slot *device.Slot, n *node, port int) (l *idList, err error) {
	err = r.mending(ctx, slot, func() error {
		l, err = r.idsOf(n, port)
		return err
	})
	return l, err
}

// mending calls f until nothing it reads of finished cells turns out to be lost:
// those cells are executed again.
func (r *run) mending(ctx context.Context, slot *device.Slot, f func() error) error {
	for {
		err := f()
		l := lost(err)
		if l == nil {
			return err
		}
		if err := r.restore(ctx, slot, l); err != nil {
			return err
		}
	}
}

// load returns payloads of n's port by position. What the store lost or what
// was altered there is computed again.
func (r *run) load(ctx context.Context, slot *device.Slot, n *node, port int, at []int32) (out [][]byte, err error) {
	out = make([][]byte, len(at))
	err = r.mending(ctx, slot, func() error {
		n.mu.Lock()
		restored := n.restored
		n.mu.Unlock()
		l, err := r.listing(n, port)
		if err != nil {
			return err
		}
		var gone []int32
		var why error
		for i, k := range at {
			if out[i] != nil {
				continue
			}
			e := l.At(int(k))
			b, err := r.store.Load(e.Ref)
			var miss *store.Miss
			switch {
			case err == nil:
				out[i] = b
			case errors.As(err, &miss):
				gone = append(gone, k)
				if e.Kept() {
					why = err
				}
			default:
				return err
			}
		}
		if gone == nil {
			return nil
		}
		if n.Step.Keep || n.Stage.Relation == stages.Whole {
			return &lostError{n, restored, cmp.Or(why, errDropped)}
		}
		if why != nil {
			r.warn(n.Cell, "%v; it is computed again", why)
		}
		again, err := r.regenerate(ctx, slot, n, port, gone)
		for i, k := range at {
			if out[i] == nil {
				out[i] = again[k]
			}
		}
		return err
	})
	return out, err
}

// errDropped is why bytes are computed again that earlier runs didn't keep.
var errDropped = errors.New("its bytes weren't kept by an earlier run")

// maxRestored is how often a cell is executed again before the run gives it up.
const maxRestored = 2

// restore executes a finished cell again, because some of its results are gone.
// What is still there isn't computed a second time, and what another worker
// restored meanwhile isn't restored again.
//
// It computes on a device, whatever the cell needs: who waits for a cell that is
// being restored may hold the only one.
func (r *run) restore(ctx context.Context, slot *device.Slot, l *lostError) error {
	n := l.n
	slot, release, err := r.onDevice(ctx, slot)
	if err != nil {
		return err
	}
	defer release()
	n.restoring.Lock()
	defer n.restoring.Unlock()
	n.mu.Lock()
	restored, before := n.restored, node{hit: n.hit}
	n.mu.Unlock()
	switch {
	case restored != l.restored:
		return nil
	case restored == maxRestored:
		return fmt.Errorf("%s: %w, and computing it again didn't help", n.Cell, l.err)
	}
	defer func() {
		n.mu.Lock()
		n.restored++
		n.listings = nil // those that others have loaded meanwhile are of what's lost
		n.mu.Unlock()
	}()
	r.warn(n.Cell, "%v; it is computed again", l.err)
	n.forget()
	r.doubt(n)
	j := &job{members: []*member{{node: n}}, restores: true}
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

// doubt reads everything that's stored of n, so that all that is lost is known: a
// disk that lost one thing may have lost more.
func (r *run) doubt(n *node) {
	for p := range n.stored().Packs() {
		_, _ = r.store.Load(store.Ref{Digest: p.Digest, Pack: p, Len: p.Size}) // which remembers what it finds
	}
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
	var first []int32 // by call of calls: its first item
	for _, k := range at {
		c := k
		if l.HasParents() {
			c, k = family(l, k)
		}
		if len(calls) == 0 || calls[len(calls)-1] != int(c) {
			calls, first = append(calls, int(c)), append(first, k)
		}
	}
	outs, err := r.execute(ctx, slot, m, calls, inFlight{})
	if err != nil {
		return nil, err
	}
	found := map[int32][]byte{}
	for i := range calls {
		for k, b := range outs[i].payloads[port] {
			found[first[i]+int32(k)] = b.data
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

// family returns the call that item k came out of, and the first item that did.
func family(l *store.Listing, k int32) (call, first int32) {
	call = l.At(int(k)).Parent
	for k > 0 && l.At(int(k-1)).Parent == call {
		k--
	}
	return call, k
}
