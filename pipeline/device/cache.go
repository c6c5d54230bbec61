package device

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/stages"
)

// A Cache holds the loaded sessions of the slots of one device. If their memory exceeds the cache's limit,
// it closes the least recently used sessions that no running call uses.
type Cache struct {
	// Memory, if set, keeps facts that programs find out about the device: see [stages.Remembering].
	Memory stages.Memory

	limit int64
	lost  atomic.Bool

	mu      sync.Mutex // guards the fields below, and using and nested of the slots
	slots   int
	entries map[string]*entry
	clock   int64
}

// NewCache returns a cache of up to limit bytes.
func NewCache(limit int64) *Cache { return &Cache{limit: limit, entries: map[string]*entry{}} }

type entry struct {
	built  chan struct{} // closed once the builder has returned
	c      io.Closer     // nil until then, and if the builder failed
	err    error         // the builder's
	weight int64
	used   int64 // time of the last use, by the cache's clock
	users  int   // number of slots whose running call has used it
}

// A Slot is a place on a device where one chunk at a time is computed. It implements [stages.Slot].
type Slot struct {
	device stages.Device
	cache  *Cache
	number int // index in its cache

	nested int // depth of nested calls of stages
	using  map[*entry]bool

	spent   Spent // since [Slot.Take]
	loading int   // depth of nested calls of Share
}

// Spent counts the passes of models on a slot, and what it takes to load their programs.
type Spent struct {
	Forward, Backward int           // passes: rows of batches that were asked for
	Programs          int           // compiled
	Loading           time.Duration // waiting for sessions, whose programs are compiled, and for first runs
}

// Passed implements [stages.Meter].
func (s *Slot) Passed(forward, backward int) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.spent.Forward += forward
	s.spent.Backward += backward
}

// Compiled implements [stages.Meter].
func (s *Slot) Compiled(programs int, late time.Duration) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.spent.Programs += programs
	s.spent.Loading += late
}

// Take returns the slot's Spent since the last Take.
func (s *Slot) Take() (spent Spent) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	spent, s.spent = s.spent, spent
	return spent
}

// load starts the clock of [Spent.Loading], unless it runs already. The result stops it.
func (s *Slot) load() (end func()) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	began := time.Now()
	s.loading++
	return func() {
		s.cache.mu.Lock()
		defer s.cache.mu.Unlock()
		if s.loading--; s.loading == 0 {
			s.spent.Loading += time.Since(began)
		}
	}
}

// Memory implements [stages.Remembering].
func (s *Slot) Memory() stages.Memory { return s.cache.Memory }

// Lose marks the device of the cache's slots as lost, and reports whether it wasn't before.
func (s *Slot) Lose() bool { return !s.cache.lost.Swap(true) }

// Lost reports whether the slot's device is lost.
func (s *Slot) Lost() bool { return s.cache.lost.Load() }

// NewSlot returns one more slot of the cache, on d.
func (c *Cache) NewSlot(d stages.Device) *Slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots++
	return &Slot{device: d, cache: c, number: c.slots, using: map[*entry]bool{}}
}

// On reports whether the slot's sessions are in the cache.
func (s *Slot) On(cache *Cache) bool { return s.cache == cache }

// Device returns the slot's device.
func (s *Slot) Device() stages.Device { return s.device }

// Begin starts a call of a stage: until end is called, no session that the call uses is closed. A nested
// call, which computes an input of the outer one again, also protects the outer call's sessions.
func (s *Slot) Begin() (end func()) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.nested++
	return func() {
		s.cache.mu.Lock()
		defer s.cache.mu.Unlock()
		if s.nested--; s.nested > 0 {
			return
		}
		for e := range s.using {
			e.users--
		}
		clear(s.using)
	}
}

// Keep implements [stages.Slot].
func (s *Slot) Keep(key string, weight int64, build func() (io.Closer, error)) (io.Closer, error) {
	return s.Share(fmt.Sprintf("slot %d: %s", s.number, key), weight, build)
}

// Share implements [stages.Slot]. Concurrent callers wait for the first and get its value or error. If it
// panicked, one of them builds instead.
func (s *Slot) Share(key string, weight int64, build func() (io.Closer, error)) (io.Closer, error) {
	defer s.load()()
	for {
		e, found := s.take(key, weight)
		if !found {
			return s.fill(key, e, build)
		}
		<-e.built
		if e.c != nil || e.err != nil {
			return e.c, e.err
		}
	}
}

// take returns the entry of a key. If it is new, the caller must fill it.
func (s *Slot) take(key string, weight int64) (e *entry, found bool) {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	e, found = c.entries[key]
	if !found {
		c.evict(c.limit - weight)
		e = &entry{built: make(chan struct{}), weight: weight}
		c.entries[key] = e
	}
	c.clock++
	e.used = c.clock
	if s.nested > 0 && !s.using[e] {
		s.using[e] = true
		e.users++
	}
	return e, found
}

// fill builds an entry. If the builder fails or panics, the entry is removed.
func (s *Slot) fill(key string, e *entry, build func() (io.Closer, error)) (c io.Closer, err error) {
	defer func() {
		s.cache.mu.Lock()
		defer s.cache.mu.Unlock()
		if w, ok := c.(stages.Weighed); ok && w.Weight() > 0 {
			e.weight = w.Weight()
			s.cache.evict(s.cache.limit) // not this one, which isn't built yet
		}
		if e.c, e.err = c, err; c == nil {
			delete(s.cache.entries, key)
			delete(s.using, e)
		}
		close(e.built)
	}()
	if c, err = build(); err != nil {
		c = nil
	}
	return c, err
}

// evict closes sessions with a weight that no running call uses, the oldest first, until the others weigh
// no more than room. A session that fails to close is removed nevertheless.
func (c *Cache) evict(room int64) {
	for {
		var total int64
		oldest := ""
		for key, e := range c.entries {
			total += e.weight
			if e.free() && e.weight > 0 && (oldest == "" || e.used < c.entries[oldest].used) {
				oldest = key
			}
		}
		if total <= room || oldest == "" {
			return
		}
		c.entries[oldest].c.Close()
		delete(c.entries, oldest)
	}
}

// free reports whether the entry is built and no call uses it.
func (e *entry) free() bool { return e.c != nil && e.users == 0 }

// Trim closes all sessions that no running call uses: at the end, or to make room when memory runs out.
func (c *Cache) Trim() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for key, e := range c.entries {
		if e.free() {
			errs = append(errs, e.c.Close())
			delete(c.entries, key)
		}
	}
	return errors.Join(errs...)
}

// Trim trims the slot's cache.
func (s *Slot) Trim() error { return s.cache.Trim() }
