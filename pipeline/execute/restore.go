package execute

import (
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// loader returns a function that loads payloads of a port.
func (w *Worker) loader(from *resolve.Cell, port int) func(int) ([]byte, error) {
	return func(i int) ([]byte, error) {
		b, err := w.load(from, port, []int32{int32(i)})
		if err != nil {
			return nil, err
		}
		return b[0], nil
	}
}

// load returns payloads of n's port by position. Payloads that the store has lost, or that were altered
// there, are computed again.
func (w *Worker) load(n *resolve.Cell, port int, at []int32) (out [][]byte, err error) {
	out = make([][]byte, len(at))
	err = w.mend(func() error {
		gone, err := w.executor.Resolver.Fetch(n, port, at, out)
		if err != nil || gone == nil {
			return err
		}
		bytes, err := w.regenerate(n, port, gone)
		if err != nil {
			return err
		}
		l, err := w.executor.Resolver.Listing(n, port)
		if err != nil {
			return err
		}
		return complete(n, port, out, bytes, func(i int) stages.Digest { return l.PayloadDigest(int(at[i])) })
	})
	return out, err
}

// complete fills in the missing payloads of n's port, by digest, from those computed again.
func complete(n *resolve.Cell, port int, out [][]byte, again map[stages.Digest][]byte,
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

// errDiffers is the error of a result that was computed again and isn't the recorded one.
func errDiffers(c *plan.Cell, what string) error {
	const hint = "run again with --force"
	return fmt.Errorf("%s: %s came out different from what was recorded; %s %s", c, what, hint, c)
}

// regenerate computes items of a cell whose bytes aren't kept.
func (w *Worker) regenerate(n *resolve.Cell, port int, at []int32) (map[stages.Digest][]byte, error) {
	bytes := newInFlight()
	compute := func(on *Worker) error {
		m := &member{cell: n}
		if err := on.prepare(m, nil); err != nil {
			return err
		}
		l, err := on.executor.Resolver.Listing(n, port)
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
	} else if err = w.reclaim(); err == nil { // another worker may have its slot now
		err = compute(w)
	}
	return bytes.of[n], err
}

// again executes calls of m, whose bytes aren't kept, and adds the results to bytes.
func (w *Worker) again(m *member, calls []int, bytes *inFlight) error {
	done, err := w.execute([]*task{{member: m, calls: calls}}, bytes)
	if err != nil {
		return err
	}
	for _, p := range payloadsOf(done[0].outs) {
		bytes.put(m.cell, stages.Sum(p), p)
	}
	return nil
}

// mend calls f. If the store has lost results of finished cells that f reads, mend executes these cells again
// and calls f again.
func (w *Worker) mend(f func() error) error {
	for {
		err := f()
		l := resolve.IsLost(err)
		if l == nil {
			return err
		}
		if err := w.restore(l); err != nil {
			return err
		}
	}
}

// maxRestored is how often a cell is executed again before the run gives up on it.
const maxRestored = 2

// restore executes a finished cell again, because some of its results are gone. Existing results aren't
// computed a second time, and a cell that another worker has restored meanwhile isn't restored again.
//
// It computes on a device, whatever the cell needs: the worker that waits for a cell which is being
// restored may hold the only slot of the host.
func (w *Worker) restore(l *resolve.Lost) error {
	return w.onDevice(l.Cell, func(on *Worker) error { return on.executeAgain(l) })
}

// executeAgain executes a finished cell again on w's slot.
func (w *Worker) executeAgain(l *resolve.Lost) (err error) {
	n := l.Cell
	restoring := &w.executor.of(n).restoring
	restoring.Lock()
	defer restoring.Unlock()
	before := n.Restoring()
	switch {
	case before.Times != l.Times:
		return nil
	case w.slot.Lost(): // while another worker restored
		return stages.ErrDeviceLost
	case before.Times == maxRestored:
		return fmt.Errorf("%s: %w, and computing it again didn't help", n.Cell, l.Err)
	}
	defer func() { n.Restored(!errors.Is(err, stages.ErrDeviceLost)) }()
	w.executor.warn(n.Cell, "%v; it is computed again", l.Err)
	n.Forget()
	// A disk that has lost one object may have lost more. The store remembers unreadable ones.
	for p := range before.Hit.Objects() {
		_, _ = w.executor.Store.Load(store.Ref{Digest: p.Digest, Object: p, Len: p.Size})
	}
	if err := w.whole(&Job{members: []*member{{cell: n}}, restores: true}); err != nil {
		return err
	}
	for p := range before.Hit.Outputs() { // unless a share executed only its own items
		if was, _, _ := before.Hit.Output(p); before.Same(n) && was != n.Result(p) {
			return errDiffers(n.Cell, fmt.Sprintf("its port %q", n.Stage.Outputs[p].Name))
		}
	}
	w.executor.restored.Add(1)
	return nil
}

// whole takes a job of one member through all its phases.
func (w *Worker) whole(j *Job) error {
	if w.Open(j); w.lost != nil {
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
	return w.commit(m)
}
