package device

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/runexp/runexp/stages"
)

// A Shelf is the memory of a device, in which its slots keep sessions. The least recently
// used of them are closed when all weigh more than the shelf may hold.
type Shelf struct {
	limit int64

	mu    sync.Mutex // guards what follows, and what slots use
	slots int
	kept  map[string]*keeping
	clock int64
}

// NewShelf returns a shelf that holds up to limit bytes.
func NewShelf(limit int64) *Shelf {
	return &Shelf{limit: limit, kept: map[string]*keeping{}}
}

type keeping struct {
	made   chan struct{} // closed once c is there, or couldn't be made
	c      io.Closer     // nil until then
	err    error         // why it couldn't be made
	weight int64
	used   int64 // by the shelf's clock
	users  int   // slots on which a call runs that used it
}

// A Slot is a place on a device where one chunk at a time is computed. It implements
// [stages.Slot].
type Slot struct {
	device stages.Device
	shelf  *Shelf
	number int // on its shelf

	nested int // calls of stages that run, one within the other
	using  map[*keeping]bool
}

// NewSlot returns one more slot of the shelf, on d.
func (s *Shelf) NewSlot(d stages.Device) *Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots++
	return &Slot{device: d, shelf: s, number: s.slots, using: map[*keeping]bool{}}
}

// On reports whether the slot is one of the shelf's.
func (s *Slot) On(shelf *Shelf) bool { return s.shelf == shelf }

// Device returns where the slot computes.
func (s *Slot) Device() stages.Device { return s.device }

// Begin says that a stage is called: what earlier calls used may be closed until
// end is called. A call within a call, to compute again what the outer one reads,
// leaves alone what the outer one uses.
func (s *Slot) Begin() (end func()) {
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	s.nested++
	return func() {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		if s.nested--; s.nested > 0 {
			return
		}
		for k := range s.using {
			k.users--
		}
		clear(s.using)
	}
}

// Keep implements [stages.Slot].
func (s *Slot) Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return s.Share(fmt.Sprintf("slot %d: %s", s.number, key), weight, make)
}

// Share implements [stages.Slot]. While one slot makes something, others wait for it.
func (s *Slot) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	for {
		k, mine := s.take(key, weight)
		if mine {
			return s.fill(key, k, make)
		}
		<-k.made
		if k.c != nil || k.err != nil {
			return k.c, k.err
		}
		// Whoever began has panicked: this slot does so itself, or better.
	}
}

// take returns what is kept with a key, or makes room for it; mine says that it's to be
// made by who asks.
func (s *Slot) take(key string, weight int64) (k *keeping, mine bool) {
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	k, there := s.shelf.kept[key]
	if !there {
		s.shelf.evict(s.shelf.limit - weight)
		k = &keeping{made: make(chan struct{}), weight: weight}
		s.shelf.kept[key] = k
	}
	s.shelf.clock++
	k.used = s.shelf.clock
	if s.nested > 0 && !s.using[k] {
		s.using[k] = true
		k.users++
	}
	return k, !there
}

// fill makes what k is for. If that fails, or panics, k is forgotten.
func (s *Slot) fill(key string, k *keeping, make func() (io.Closer, error)) (io.Closer, error) {
	var c io.Closer
	var err error
	defer func() {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		if k.c, k.err = c, err; c == nil {
			delete(s.shelf.kept, key)
			delete(s.using, k)
		}
		close(k.made)
	}()
	if c, err = make(); err != nil {
		c = nil
	}
	return c, err
}

// evict closes what no running call uses and weighs something, oldest first, until the rest
// weighs no more than room. What can't be closed cleanly is gone all the same.
func (s *Shelf) evict(room int64) {
	for {
		var total int64
		oldest := ""
		for key, k := range s.kept {
			total += k.weight
			if k.free() && k.weight > 0 && (oldest == "" || k.used < s.kept[oldest].used) {
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

// free reports whether nobody uses k or makes it.
func (k *keeping) free() bool { return k.c != nil && k.users == 0 }

// Trim closes everything that no running call uses, to make room after a lack of
// memory, or at the end.
func (s *Shelf) Trim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for key, k := range s.kept {
		if k.free() {
			errs = append(errs, k.c.Close())
			delete(s.kept, key)
		}
	}
	return errors.Join(errs...)
}

// Trim does so on the slot's shelf.
func (s *Slot) Trim() error { return s.shelf.Trim() }
