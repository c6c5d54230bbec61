package pipeline

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A loader returns a function that loads payloads of a port.
type loader func(from *node, port int) func(int) ([]byte, error)

// data describes what is behind an edge.
func (r *resolver) data(e plan.Edge, load loader) (stages.Data, error) {
	from := r.nodes[e.From.Index]
	l, err := r.listing(from, e.Port)
	if err != nil {
		return stages.Data{}, err
	}
	d := stages.Data{Coord: e.Coord, Facts: l.Facts, Load: load(from, e.Port)}
	if !from.Stage.Outputs[e.Port].Type.Items {
		d.Items = stages.ItemSlice{{Digest: l.PayloadDigest(0)}}
		d.Base, err = r.base(e, load)
		return d, err
	}
	ids, err := r.idsOf(from, e.Port)
	d.Items = &portItems{l, ids}
	return d, err
}

// base describes what the value behind an edge refers to, nil if it refers to none.
func (r *resolver) base(e plan.Edge, load loader) (*stages.Data, error) {
	b, ok := e.Base()
	if !ok {
		return nil, nil
	}
	d, err := r.data(b, load)
	return &d, err
}

// portItems are the items of a port.
type portItems struct {
	*store.Listing
	ids *idList
}

func (p *portItems) At(i int) (stages.Item, error) {
	return stages.Item{ID: p.ids.ids[i], Origin: p.ids.origin(i), Digest: p.PayloadDigest(i)}, nil
}

// data describes what is behind an edge. Payloads that the store lost are computed again.
func (w *worker) data(e plan.Edge) (d stages.Data, err error) {
	err = w.mend(func() error {
		d, err = w.resolver.data(e, w.loader)
		return err
	})
	return d, err
}

// loader returns a function that loads payloads of a port.
func (w *worker) loader(from *node, port int) func(int) ([]byte, error) {
	return func(i int) ([]byte, error) {
		b, err := w.load(from, port, []int32{int32(i)})
		if err != nil {
			return nil, err
		}
		return b[0], nil
	}
}

// fetch puts payloads of n's port, by position, into out where that has none yet. It returns those that the
// store doesn't have, of cells whose bytes aren't kept; of others that is a lostError.
func (r *resolver) fetch(n *node, port int, at []int32, out [][]byte) (gone []int32, err error) {
	n.mu.Lock()
	restored := n.restored
	l, err := r.listingLocked(n, port)
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var why error
	for i, k := range at {
		if out[i] != nil {
			continue
		}
		e := l.At(int(k))
		b, err := r.store.Load(e.Ref)
		switch {
		case err == nil:
			out[i] = b
		case errors.As(err, new(*store.Miss)):
			gone = append(gone, k)
			if e.Kept() {
				why = err
			}
		default:
			return nil, err
		}
	}
	if gone != nil && n.kept() {
		return nil, &lostError{n, restored, cmp.Or(why, errDropped)}
	}
	if why != nil {
		r.warn(n.Cell, "%v; it is computed again", why)
	}
	return gone, nil
}

// errDropped is why bytes are computed again that earlier runs didn't keep.
var errDropped = errors.New("its bytes weren't kept by an earlier run")

// load returns payloads of n's port by position. What the store lost, or what was altered there, is computed
// again.
func (w *worker) load(n *node, port int, at []int32) (out [][]byte, err error) {
	out = make([][]byte, len(at))
	err = w.mend(func() error {
		gone, err := w.fetch(n, port, at, out)
		if err != nil || gone == nil {
			return err
		}
		bytes, err := w.regenerate(n, port, gone)
		if err != nil {
			return err
		}
		l, err := w.listing(n, port)
		if err != nil {
			return err
		}
		return n.complete(port, out, bytes, func(i int) stages.Digest { return l.PayloadDigest(int(at[i])) })
	})
	return out, err
}

// complete fills in the payloads of n's port that are missing, of digests, from those computed again.
func (n *node) complete(port int, out [][]byte, again map[stages.Digest][]byte,
	digest func(i int) stages.Digest) error {
	for i := range out {
		var ok bool
		if out[i] == nil {
			if out[i], ok = again[digest(i)]; !ok {
				return errDiffers(n.Cell, fmt.Sprintf("an item of port %q", n.Stage.Outputs[port].Name))
			}
		}
	}
	return nil
}

// errDiffers says that what was computed again isn't what was recorded.
func errDiffers(c *plan.Cell, what string) error {
	const hint = "run again with --force"
	return fmt.Errorf("%s: %s came out different from what was recorded; %s %s", c, what, hint, c)
}

// regenerate computes items of a cell whose bytes aren't kept.
func (w *worker) regenerate(n *node, port int, at []int32) (map[stages.Digest][]byte, error) {
	bytes := newInFlight()
	compute := func(on *worker) error {
		m := &member{node: n}
		if err := on.prepare(m, nil); err != nil {
			return err
		}
		l, err := on.listing(n, port)
		if err != nil {
			return err
		}
		var calls []int
		for _, k := range at {
			call := int(k)
			if l.HasParents() {
				call = int(l.At(call).Parent)
			}
			if len(calls) == 0 || calls[len(calls)-1] != call {
				calls = append(calls, call)
			}
		}
		return on.again(m, calls, bytes)
	}
	var err error
	if n.Stage.Device {
		err = w.onDevice(n, compute)
	} else if err = w.reclaim(); err == nil { // its slot may be another worker's by now
		err = compute(w)
	}
	return bytes.of[n], err
}

// again executes calls of m, whose bytes aren't kept, and adds what comes out to bytes.
func (w *worker) again(m *member, calls []int, bytes *inFlight) error {
	done, err := w.execute([]*task{{member: m, calls: calls}}, bytes)
	if err != nil {
		return err
	}
	for _, p := range payloadsOf(done[0].outs) {
		bytes.put(m.node, stages.Sum(p), p)
	}
	return nil
}

// mend calls f until nothing that it reads of finished cells turns out to be lost: those cells are executed
// again.
func (w *worker) mend(f func() error) error {
	for {
		err := f()
		l := lost(err)
		if l == nil {
			return err
		}
		if err := w.restore(l); err != nil {
			return err
		}
	}
}

// maxRestored is how often a cell is executed again before the run gives it up.
const maxRestored = 2

// restore executes a finished cell again, because some of its results are gone. What is still there isn't
// computed a second time, and what another worker restored meanwhile isn't restored again.
//
// It computes on a device, whatever the cell needs: who waits for a cell that is being restored may hold the
// only one.
func (w *worker) restore(l *lostError) error {
	return w.onDevice(l.n, func(on *worker) error { return on.executeAgain(l) })
}

// executeAgain executes a finished cell again on w's slot.
func (w *worker) executeAgain(l *lostError) (err error) {
	n := l.n
	n.restoring.Lock()
	defer n.restoring.Unlock()
	n.mu.Lock()
	restored, before, entire := n.restored, node{hit: n.hit}, n.entire
	n.mu.Unlock()
	switch {
	case restored != l.restored:
		return nil
	case restored == maxRestored:
		return fmt.Errorf("%s: %w, and computing it again didn't help", n.Cell, l.err)
	}
	defer func() {
		n.mu.Lock()
		if !errors.Is(err, stages.ErrDeviceLost) {
			n.restored++
		}
		n.listings = nil // those that others have loaded meanwhile are of what's lost
		n.mu.Unlock()
	}()
	w.warn(n.Cell, "%v; it is computed again", l.err)
	n.forget()
	// A disk that lost one thing may have lost more. The store remembers what can't be read.
	for p := range before.hit.Packs() {
		_, _ = w.store.Load(store.Ref{Digest: p.Digest, Pack: p, Len: p.Size})
	}
	if err := w.whole(&job{members: []*member{{node: n}}, restores: true}); err != nil {
		return err
	}
	for p := range before.hit.Outputs() { // unless a share executed its own items of them alone
		if entire == n.entire && before.result(p) != n.result(p) {
			return errDiffers(n.Cell, fmt.Sprintf("its port %q", n.Stage.Outputs[p].Name))
		}
	}
	w.restored.Add(1)
	return nil
}

// whole takes a job of one member through all its phases.
func (w *worker) whole(j *job) error {
	if w.open(j); w.lost != nil {
		return w.lost
	}
	for _, chunk := range j.chunks {
		if w.compute(j, chunk, func() {}); w.lost != nil {
			return w.lost
		}
	}
	m := j.members[0]
	if err := m.failure(); err != nil {
		return err
	}
	return w.close(m)
}
