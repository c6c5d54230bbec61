// Package stagetest runs a single stage on payloads in memory, for tests: stagetest.go has the harness,
// needs.go skips tests that this machine can't run, arrays.go reads NumPy's files, passes.go computes
// formulas of passes, latex.go compiles LaTeX, and texts.go makes hostile texts.
package stagetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/runexp/runexp/stages"
)

// Items returns the data of an item port with the ids item-0, item-1, ….
func Items(facts stages.Facts, payloads ...[]byte) stages.Data {
	var items stages.ItemSlice
	for i, p := range payloads {
		id := fmt.Sprintf("item-%d", i)
		items = append(items, stages.Item{ID: id, Origin: id, Digest: stages.Sum(p)})
	}
	return stages.Data{Facts: facts, Items: items,
		Load: func(i int) ([]byte, error) { return payloads[i], nil }}
}

// Value returns the data of a value port.
func Value(facts stages.Facts, payload []byte) stages.Data {
	return stages.Data{
		Facts: facts,
		Items: stages.ItemSlice{{Digest: stages.Sum(payload)}},
		Load:  func(int) ([]byte, error) { return payload, nil },
	}
}

// At returns d at coordinates given as axis, id, axis, id, …
func At(d stages.Data, coord ...string) stages.Data {
	for i := 0; i < len(coord); i += 2 {
		d.Coord = append(d.Coord, stages.Coord{Axis: coord[i], ID: coord[i+1]})
	}
	return d
}

// A Result holds what a stage has put on its ports.
type Result struct {
	Payloads map[string][][]byte // by port, in order
	Facts    map[string]stages.Facts
	Warnings []string
}

// Env returns an environment for s with the given inputs; Each stages get one call per item of the first item
// port, joined by position.
func Env(s *stages.Stage, in map[string][]stages.Data) (*stages.Env, error) {
	e := &stages.Env{Stage: s, Slot: NewSlot(), Batch: 8, Seed: 1, Ports: in}
	primary := s.Primary()
	if primary < 0 {
		return e, nil
	}
	first := in[s.Inputs[primary].Name][0]
	for i := range first.Items.Len() {
		item, err := first.Items.At(i)
		if err != nil {
			return nil, err
		}
		c := stages.Call{Item: item, Members: make([][]stages.Member, len(s.Inputs))}
		for k, p := range s.Inputs {
			for _, d := range in[p.Name] {
				if !p.Type.Items {
					continue
				}
				b, err := d.Load(i)
				if err != nil {
					return nil, err
				}
				member, err := d.Items.At(i)
				if err != nil {
					return nil, err
				}
				c.Members[k] = append(c.Members[k], stages.Member{Item: member, Coord: d.Coord, Data: b})
			}
		}
		e.Calls = append(e.Calls, c)
	}
	return e, nil
}

// Run runs s with params, a pointer to the stage's parameter struct or nil for the defaults, and fails the
// test on error.
func Run(t testing.TB, s stages.Stage, params any, in map[string][]stages.Data) Result {
	t.Helper()
	r, err := Try(s, params, in)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return r
}

// Try runs s as Run does and returns its error.
func Try(s stages.Stage, params any, in map[string][]stages.Data) (Result, error) {
	return TryOn(NewSlot(), s, params, in)
}

// TryOn is Try on a given slot.
func TryOn(slot stages.Slot, s stages.Stage, params any, in map[string][]stages.Data) (Result, error) {
	r := Result{Payloads: map[string][][]byte{}, Facts: map[string]stages.Facts{}}
	if params == nil {
		params = s.NewParams()
	}
	e, err := Env(&s, in)
	if err != nil {
		return r, err
	}
	e.Slot = slot
	e.OnWarn = func(w stages.Warning) { r.Warnings = append(r.Warnings, w.String()) }
	if s.Sources != nil {
		var ids []string
		for _, c := range e.Calls {
			ids = append(ids, c.ID)
		}
		sources, err := s.Sources(params, ids)
		if err != nil {
			return r, err
		}
		for i := range sources {
			switch {
			case s.Relation == stages.Whole:
				e.Read = append(e.Read, sources[i])
			case ids != nil:
				e.Calls[i].Source = &sources[i]
			default:
				id := sources[i].ID
				e.Calls = append(e.Calls,
					stages.Call{Item: stages.Item{ID: id, Origin: id}, Source: &sources[i]})
			}
		}
	}
	facts, err := s.FactsOf(params, in)
	if err != nil {
		return r, err
	}
	maps.Copy(r.Facts, facts)
	if err := s.Run(context.Background(), params, e); err != nil {
		return r, err
	}
	// Texts are run by their lengths.
	slices.SortStableFunc(e.Outputs, func(a, b stages.Output) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range e.Outputs {
		if o.From != "" {
			if o.Data, err = in[o.From][0].Load(o.Index); err != nil {
				return r, err
			}
		}
		r.Payloads[o.Port] = append(r.Payloads[o.Port], o.Data)
	}
	for port, f := range e.OutFacts {
		r.Facts[port] = f
	}
	return r, nil
}

// NewSlot returns a CPU slot that never closes a kept value.
func NewSlot() stages.Slot { return slot{} }

// NewSlotOn returns a slot on a device that never closes a kept value.
func NewSlotOn(d stages.Device) stages.Slot { return elsewhere{slot{}, d} }

type elsewhere struct {
	slot
	device stages.Device
}

func (s elsewhere) Device() stages.Device { return s.device }

type slot map[string]io.Closer

func (slot) Device() stages.Device { return stages.Device{Class: "cpu"} }

func (s slot) Keep(key string, _ int64, make func() (io.Closer, error)) (io.Closer, error) {
	if c, ok := s[key]; ok {
		return c, nil
	}
	c, err := make()
	if err == nil {
		s[key] = c
	}
	return c, err
}

func (s slot) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return s.Keep(key, weight, make)
}

// Release closes the values kept by slots of NewSlot, NewSlotOn or NewWorkers.
func Release(slots ...stages.Slot) {
	for _, s := range slots {
		switch s := s.(type) {
		case slot:
			s.release()
		case elsewhere:
			s.release()
		case worker:
			s.release()
			s.shared.release()
		}
	}
}

func (s slot) release() {
	for _, c := range s {
		c.Close()
	}
	clear(s)
}

// NewWorkers returns n CPU slots of one thread each with common shared values. Slots that request the same
// missing value concurrently both make it.
func NewWorkers(n int) []stages.Slot {
	all := make([]stages.Slot, n)
	shared := &shared{slot: slot{}}
	for i := range all {
		all[i] = worker{slot{}, shared}
	}
	return all
}

type shared struct {
	mu sync.Mutex // guards slot
	slot
}

type worker struct {
	slot
	shared *shared
}

func (worker) Device() stages.Device { return stages.Device{Class: "cpu", Threads: 1} }

func (w worker) Share(key string, _ int64, make func() (io.Closer, error)) (io.Closer, error) {
	w.shared.mu.Lock()
	c, ok := w.shared.slot[key]
	w.shared.mu.Unlock()
	if ok {
		return c, nil
	}
	c, err := make()
	if err == nil {
		w.shared.mu.Lock()
		w.shared.slot[key] = c
		w.shared.mu.Unlock()
	}
	return c, err
}
