// Package standin has a test device that stands for a graphics card: it computes on the processor, but in
// memory of its own. Code that forgets to copy an input there computes with the old one.
package standin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

// A Device counts the transfers to and from its memory.
type Device struct {
	Class string
	Most  int                      // rows that its memory holds, 0 for any number
	Spent func(rows int)           // if set, called by every run
	Fail  func(rows int) error     // if set, returns the library's error of a run
	mu    sync.Mutex               // guards the fields below
	count map[string]int           // uploads of each input; and runs, under "run"
	bytes struct{ up, down int64 } // bytes transferred
}

// errMemory is ONNX Runtime's error if memory runs out.
var errMemory = errors.New("BFCArena::AllocateRawInternal: Available memory of 0 is smaller than requested " +
	"bytes of 4096")

// New adds the device's class to the classes until the test ends.
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

// Crossed returns, since its last call, how often each input was uploaded and, under "run", how often a
// session ran, and how many bytes were transferred each way.
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

// A carrier holds copies of the uploaded inputs.
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
