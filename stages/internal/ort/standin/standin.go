// Package standin has a device for tests that stands in for a card: it computes on the processor, but from
// memory of its own, as a card does. What isn't copied there isn't seen there.
package standin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/ort"
)

// A Device counts what crosses its bus.
type Device struct {
	Class string
	Most  int                      // rows that its memory holds, 0 for any number
	Spent func(rows int)           // is called by every run, if it isn't nil
	Fail  func(rows int) error     // returns what the library says of a run, if it isn't nil
	mu    sync.Mutex               // guards what follows
	count map[string]int           // uploads by input; runs, under "run"
	bytes struct{ up, down int64 } // that crossed
}

// errMemory is what ONNX Runtime says where memory is short.
var errMemory = errors.New("BFCArena::AllocateRawInternal: Available memory of 0 is smaller than requested " +
	"bytes of 4096")

// New adds the device's class to those that there are, until the test ends.
func New(t testing.TB) *Device {
	d := &Device{Class: "standin", count: map[string]int{}}
	classes, providers := stages.DeviceClasses, ort.Providers
	stages.DeviceClasses = append(slices.Clip(classes), d.Class)
	ort.Providers = append(slices.Clip(providers),
		&ort.Provider{Class: d.Class, Name: "CPUExecutionProvider", Carry: d.carry})
	t.Cleanup(func() { stages.DeviceClasses, ort.Providers = classes, providers })
	return d
}

// Device returns the device as it is listed.
func (d *Device) Device() stages.Device { return stages.Device{Class: d.Class, Threads: 1} }

// Crossed returns how often each input was uploaded since the last call, and under "run" how often a session
// ran, and how many bytes crossed each way.
func (d *Device) Crossed() (count map[string]int, up, down int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	count, up, down = d.count, d.bytes.up, d.bytes.down
	d.count, d.bytes.up, d.bytes.down = map[string]int{}, 0, 0
	return count, up, down
}

func (d *Device) crossed(what string, up, down int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count[what]++
	d.bytes.up += int64(up)
	d.bytes.down += int64(down)
}

func (d *Device) carry(s *ort.Session, out []ort.Value) (ort.Carrier, error) {
	return &carrier{d, s, make([]ort.Value, len(s.Inputs())), out}, nil
}

// A carrier holds copies of what was uploaded.
type carrier struct {
	*Device
	session *ort.Session
	memory  []ort.Value
	out     []ort.Value
}

func (c *carrier) Upload(i int, v ort.Value) error {
	from := v.(*ort.Tensor[float32])
	if c.memory[i] == nil {
		to, err := ort.NewTensor[float32](nil, from.Shape()...)
		if err != nil {
			return err
		}
		c.memory[i] = to
	}
	copy(c.memory[i].(*ort.Tensor[float32]).Data, from.Data)
	c.crossed(c.session.Inputs()[i], 4*len(from.Data), 0)
	return nil
}

func (c *carrier) Compute(ctx context.Context) error {
	rows := 0
	for _, v := range c.memory {
		rows = max(rows, v.(*ort.Tensor[float32]).Shape()[0])
	}
	if c.Most > 0 && rows > c.Most {
		return errMemory
	}
	if c.Spent != nil {
		c.Spent(rows)
	}
	if c.Fail != nil {
		if err := c.Fail(rows); err != nil {
			return err
		}
	}
	results, err := ort.Fetch[float32](ctx, c.session, c.memory)
	if err != nil {
		return err
	}
	down := 0
	for i, v := range c.out {
		if v != nil {
			down += 4 * copy(v.(*ort.Tensor[float32]).Data, results[i].Data)
		}
	}
	c.crossed("run", 0, down)
	return nil
}

func (c *carrier) Close() error {
	var errs []error
	for _, v := range c.memory {
		if v != nil {
			errs = append(errs, v.Close())
		}
	}
	return errors.Join(errs...)
}
