// Package device turns what a user says about devices into slots: places where
// one chunk of work at a time runs, each with the sessions that are loaded there.
package device

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
)

// Parse reads a list such as "cpu", "cpu:0,cpu:1" or "cuda:0,cuda:1". "cpu" is
// one slot with all cores; k numbered cpu slots share the cores. "cuda" stands
// for every device that CUDA_VISIBLE_DEVICES lists, or the first one. Classes
// don't mix: one cell is made by one class.
func Parse(list string) ([]stages.Device, error) {
	var out []stages.Device
	seen := map[stages.Device]bool{}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		class, number, numbered := strings.Cut(name, ":")
		if class != "cpu" && class != "cuda" {
			return nil, fmt.Errorf("unknown device %q: devices are cpu, cpu:0, cuda, cuda:0, …", name)
		}
		if len(out) > 0 && out[0].Class != class {
			return nil, fmt.Errorf("devices %q mix classes: one run uses either CPU or CUDA", list)
		}
		switch {
		case numbered:
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("device %q: %q is not a number", name, number)
			}
			out = append(out, stages.Device{Class: class, Index: n})
		case class == "cuda":
			for i := range visible() {
				out = append(out, stages.Device{Class: class, Index: i})
			}
		default:
			out = append(out, stages.Device{Class: class})
		}
	}
	for _, d := range out {
		if seen[d] {
			return nil, fmt.Errorf("devices %q: %s is listed twice", list, d)
		}
		seen[d] = true
	}
	threads := max(1, runtime.NumCPU()/len(out))
	for i := range out {
		out[i].Threads = threads
	}
	return out, nil
}

func visible() int {
	v := os.Getenv("CUDA_VISIBLE_DEVICES")
	if v == "" {
		return 1
	}
	return len(strings.Split(v, ","))
}

// A Slot is a device and the sessions kept on it, the least recently used of
// which are closed when they weigh more than the slot may keep.
type Slot struct {
	device stages.Device
	limit  int64

	mu     sync.Mutex // guards what follows
	kept   map[string]*keeping
	clock  int64
	nested int   // calls of stages that run, one within the other
	inUse  int64 // clock at the start of the outermost of them
}

type keeping struct {
	c      io.Closer
	weight int64
	used   int64
}

// NewSlot returns a slot on d that keeps sessions of up to limit bytes.
func NewSlot(d stages.Device, limit int64) *Slot {
	return &Slot{device: d, limit: limit, kept: map[string]*keeping{}}
}

// Device returns where the slot computes.
func (s *Slot) Device() stages.Device { return s.device }

// Begin says that a stage is called: what earlier calls used may be closed until
// end is called. A call within a call, to compute again what the outer one reads,
// leaves alone what the outer one uses.
func (s *Slot) Begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nested++; s.nested == 1 {
		s.clock++
		s.inUse = s.clock
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.nested--
	}
}

// Keep implements [stages.Slot].
func (s *Slot) Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	if c, ok := s.find(key, weight); ok {
		return c, nil
	}
	c, err := make()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	s.kept[key] = &keeping{c: c, weight: weight, used: s.clock}
	return c, nil
}

// find returns what is kept with a key, or makes room for it.
func (s *Slot) find(key string, weight int64) (io.Closer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.kept[key]
	if !ok {
		s.evict(s.limit - weight)
		return nil, false
	}
	s.clock++
	k.used = s.clock
	return k.c, true
}

// evict closes what the running call didn't use, oldest first, until the rest
// weighs no more than room. What can't be closed cleanly is gone all the same.
func (s *Slot) evict(room int64) {
	for {
		var total int64
		oldest := ""
		for key, k := range s.kept {
			total += k.weight
			if k.used < s.inUse && (oldest == "" || k.used < s.kept[oldest].used) {
				oldest = key
			}
		}
		if total <= room || oldest == "" {
			return
		}
		s.kept[oldest].c.Close()
		delete(s.kept, oldest)
	}
}

// Trim closes everything that no running call uses, to make room after a lack of
// memory.
func (s *Slot) Trim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close(func(k *keeping) bool { return s.nested == 0 || k.used < s.inUse })
}

// Clear closes everything, at the end.
func (s *Slot) Clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close(func(*keeping) bool { return true })
}

func (s *Slot) close(which func(*keeping) bool) error {
	var errs []error
	for key, k := range s.kept {
		if which(k) {
			errs = append(errs, k.c.Close())
			delete(s.kept, key)
		}
	}
	return errors.Join(errs...)
}
