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

// A Cache holds the sessions of a device's slots in its memory. When they weigh more than the cache's limit,
// it closes the least recently used of them that no running call uses.
type Cache struct {
	// Memory, if set, keeps what programs find out about the device: see [stages.Remembering].
	Memory stages.Memory

	limit int64
	lost  atomic.Bool

	mu      sync.Mutex // guards what follows, and using and nested of the slots
	slots   int
	entries map[string]*entry
	clock   int64
}

// NewCache returns a cache of up to limit bytes.
func NewCache(limit int64) *Cache { return &Cache{limit: limit, entries: map[string]*entry{}} }

type entry struct {
	built  chan struct{} // closed once the builder has returned
	c      io.Closer     // nil until then, and if that failed
	err    error         // of the builder
	weight int64
	used   int64 // by the cache's clock
	users  int   // slots on which a call runs that used it
}

// A Slot is a place on a device where one chunk at a time is computed. It implements [stages.Slot].
type Slot struct {
	device stages.Device
	cache  *Cache
	number int // in its cache

	nested int // calls of stages that run, one within the other
	using  map[*entry]bool

	spent   Spent // since [Slot.Take]
	loading int   // calls of Share, one within the other
}

// Spent is what a slot spent on models.
type Spent struct {
	Forward, Backward int           // passes: rows of batches
	Loading           time.Duration // that was waited for what the cache holds
}

// Passed implements [stages.Meter].
func (s *Slot) Passed(forward, backward int) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.spent.Forward += forward
	s.spent.Backward += backward
}

// Take returns what the slot spent since the last Take.
func (s *Slot) Take() (spent Spent) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	spent, s.spent = s.spent, spent
	return spent
}

// load starts the clock of [Spent.Loading], unless it runs. The result stops it.
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

// Lose notes that the device of the cache's slots is lost, and reports whether that is news.
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

// Device returns where the slot computes.
func (s *Slot) Device() stages.Device { return s.device }

// Begin starts a call of a stage: until end is called, nothing is closed that the call uses. A call within a
// call, to compute again what the outer one reads, protects what the outer one uses too.
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

// take returns the entry of a key. If there was none, the caller must fill it.
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

// fill builds an entry. If that fails, or panics, the entry is removed.
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

// evict closes what no running call uses and weighs something, oldest first, until the rest weighs no more
// than room. What can't be closed cleanly is removed all the same.
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

// free reports whether nobody uses or builds the entry.
func (e *entry) free() bool { return e.c != nil && e.users == 0 }

// Trim closes everything that no running call uses, to make room after a lack of memory, or at the end.
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
