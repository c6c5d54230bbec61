package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// A Worker is a goroutine at a slot.
type Worker struct {
	executor  *Executor
	ctx       context.Context
	slot      *device.Slot
	home      chan *device.Slot // channel to which the slot is returned; nil if it is another worker's
	away      bool              // the slot has been returned
	comparing bool              // with the processor
	room      bool              // w has one of the places for storing results
	lost      error             // the slot's device is lost: it computes no more
	like      string            // maker of results of stages with a device; empty: the run's class
	behalf    *Worker           // the worker that waits for w, and may hold a device
}

// Own returns a worker with a slot of its own, for short work.
func (x *Executor) Own() *Worker {
	slot := x.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: 1})
	return &Worker{executor: x, ctx: x.ctx, slot: slot}
}

// FreeHost returns a worker on a free slot of the host, nil if there is none.
func (x *Executor) FreeHost() *Worker { return x.free(x.host) }

// FreeDevice returns a worker on a free slot of a device, nil if there is none.
func (x *Executor) FreeDevice() *Worker { return x.free(x.devices) }

func (x *Executor) free(slots chan *device.Slot) *Worker {
	for {
		select {
		case slot := <-slots:
			if !slot.Lost() {
				return &Worker{executor: x, ctx: x.ctx, slot: slot, home: slots}
			}
		default:
			return nil
		}
	}
}

// OnHost waits for a slot of the host, and calls f with a worker on it.
func (x *Executor) OnHost(ctx context.Context, f func(w *Worker) error) error {
	select {
	case slot := <-x.host:
		w := &Worker{executor: x, ctx: ctx, slot: slot, home: x.host}
		defer w.GiveBack()
		return f(w)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// GiveBack gives w's slot back, if it hasn't.
func (w *Worker) GiveBack() {
	if w.home != nil && !w.away {
		w.away = true
		w.home <- w.slot
	}
}

// reclaim waits for a slot if w gave its own back while its results are stored.
func (w *Worker) reclaim() error {
	switch {
	case !w.away:
		return nil
	case w.comparing: // workers with a slot may wait for w
		return errors.New("the store lost something meanwhile, which the next run computes again")
	}
	w.leaveRoom()
	slot, err := w.takeSlot(w.home)
	if err == nil {
		w.slot, w.away = slot, false
	}
	return err
}

// makeRoom gives w's slot back while its results are stored. If another worker may wait for these, it keeps
// the slot instead of waiting until there is room.
func (w *Worker) makeRoom(awaited bool) {
	if awaited {
		select {
		case w.executor.storing <- struct{}{}:
		default:
			return
		}
	} else {
		w.executor.storing <- struct{}{}
	}
	w.room = true
	w.GiveBack()
	w.executor.Events.SlotFree()
}

// leaveRoom lets another worker store.
func (w *Worker) leaveRoom() {
	if w.room {
		w.room = false
		<-w.executor.storing
	}
}

// takeSlot waits for a free slot.
func (w *Worker) takeSlot(from chan *device.Slot) (*device.Slot, error) {
	for {
		select {
		case s := <-from:
			if !s.Lost() {
				return s, nil
			}
		case <-w.executor.gone:
			return nil, errNoDevice
		case <-w.ctx.Done():
			return nil, context.Cause(w.ctx)
		}
	}
}

// onDevice calls f to compute n, which is finished, on a device: w's own, or one for which it waits. Work
// on a device never waits here, nor for work that does, so the wait ends. If the device is lost, f is
// called again on another one. Results of the processor are computed on the processor, whatever the run's
// devices are.
func (w *Worker) onDevice(n *resolve.Cell, f func(on *Worker) error) error {
	x := w.executor
	made := n.Stored().MadeBy()
	if n.Stage.Device && made != x.Resolver.Maker(n) && made == x.Resolver.ProcessorMaker(n) {
		slot := x.hostCache.NewSlot(stages.Device{Class: "cpu", Threads: 1})
		return f(&Worker{executor: x, ctx: w.ctx, slot: slot, like: made, behalf: w})
	}
	if w.behalf != nil { // it may hold the only device
		return w.behalf.onDevice(n, f)
	}
	if !w.slot.On(x.hostCache) {
		if err := w.reclaim(); err != nil {
			return err
		}
		return f(&Worker{executor: x, ctx: w.ctx, slot: w.slot})
	}
	x.openDevices(len(x.Devices))
	for {
		slot, err := w.takeSlot(x.devices)
		if err != nil {
			return err
		}
		on := &Worker{executor: x, ctx: w.ctx, slot: slot, home: x.devices}
		if err = f(on); errors.Is(err, stages.ErrDeviceLost) {
			on.lose(err)
			continue
		}
		on.GiveBack()
		x.Events.SlotFree()
		return err
	}
}

// lose takes w's device out of the run, with all its slots: takeSlot and free drop them. If it was the last
// one, the run ends.
func (w *Worker) lose(err error) {
	x := w.executor
	if w.lost = err; !w.slot.Lose() {
		return
	}
	func() { // its sessions are useless, and errors of closing them add nothing
		defer plan.Catch(new(error))
		_ = w.slot.Trim()
	}()
	d := w.slot.Device()
	if x.alive.Add(-1) > 0 {
		x.Events.DeviceLost(d.String(), fmt.Sprintf(
			"%s is lost, and what it was computing goes to another device: %v", d, err))
		return
	}
	x.cancel(fmt.Errorf("%w: %s: %v; what is done is stored, and the same command goes on from here",
		errNoDevice, d, err))
	close(x.gone)
}

// madeBy names the maker of n's results on w's slot, "" if that doesn't matter.
func (w *Worker) madeBy(n *resolve.Cell) string {
	if n.Stage.Device {
		return cmp.Or(w.like, w.executor.Resolver.Maker(n))
	}
	return ""
}

// Compile finds n's program. Lost values that n reads are computed again.
func (w *Worker) Compile(n *resolve.Cell) error {
	return w.mend(func() error { return w.executor.Resolver.Compile(w.ctx, n) })
}

// Look looks n up, as the resolver does. Lost inputs are computed again.
func (w *Worker) Look(n *resolve.Cell) (look resolve.Look) {
	look.Err = w.mend(func() error {
		look = w.executor.Resolver.Look(n)
		return look.Err
	})
	return look
}

// Data describes the data of an edge. Lost payloads are computed again.
func (w *Worker) Data(e plan.Edge) (d stages.Data, err error) {
	err = w.mend(func() error {
		d, err = w.executor.Resolver.Data(e, w.loader)
		return err
	})
	return d, err
}
