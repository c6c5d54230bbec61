package store

import (
	"io"
	"maps"
	"slices"

	"github.com/runexp/runexp/stages"
)

// combinedSize is the size in bytes from which on a merge adds an object of a share as it is. Smaller objects
// are combined until together they have that size: a share puts one for each chunk of each cell, and a file
// server takes milliseconds to make a file, and to open it in every later share that reads it. Tests change
// it.
var combinedSize int64 = 16 << 20

// A combining adds the small objects of shares to a store, bucket by bucket of groups, so that payloads that
// are collected together are in one file. Some bytes are stored twice: the bytes of equal objects to which
// groups of two buckets refer, or which are in different merges, even in two at once.
type combining struct {
	s     *Store
	open  func(o ObjectRef) (objectBytes, error) // an object of a share
	next  *combined                              // the one that is being filled
	moved map[ObjectRef]moved                    // objects of the bucket

	objects int // that were added
	bytes   int64
}

// A combined is an object into which others are combined.
type combined struct {
	object  ObjectRef // zero until it's complete
	b       []byte
	waiting []movedRecord
}

// A moved is the place of an object in a combined one.
type moved struct {
	to  *combined
	off int64
}

// A movedRecord is an item record that waits until the combined objects to which it refers are complete: all
// but the last one are.
type movedRecord struct {
	group  stages.Digest
	madeBy string
	items  []ItemRecord
	moved  map[ObjectRef]moved
}

func newCombining(s *Store, open func(o ObjectRef) (objectBytes, error)) *combining {
	return &combining{s: s, open: open, next: &combined{}, moved: map[ObjectRef]moved{}}
}

// take moves an object of a share. It reports false for an object that isn't combined: one that isn't in a
// share, isn't sound there, or is too large itself, or if the combined object is full.
func (c *combining) take(o ObjectRef) (at moved, taken bool) {
	if c == nil {
		return at, false
	}
	if at, taken = c.moved[o]; taken || o.Size >= combinedSize || c.next.size() >= combinedSize {
		return at, taken
	}
	f, err := c.open(o)
	if err != nil {
		return at, false
	}
	defer f.close()
	at = moved{c.next, c.next.size()}
	all := slices.Grow(c.next.b, int(o.Size))[:at.off+o.Size]
	if _, err := io.ReadFull(f, all[at.off:]); err != nil || stages.Sum(all[at.off:]) != o.Digest {
		return at, false
	}
	c.next.b = all
	c.moved[o] = at
	return at, true
}

func (o *combined) size() int64 { return int64(len(o.b)) }

// mark returns a function that undoes the takes after it.
func (c *combining) mark() (undo func()) {
	if c == nil {
		return func() {}
	}
	size := c.next.size()
	return func() {
		c.next.b = c.next.b[:size]
		maps.DeleteFunc(c.moved, func(_ ObjectRef, at moved) bool {
			return at.to == c.next && at.off >= size
		})
	}
}

// add adds a record as soon as the objects to which it refers are in the store.
func (c *combining) add(r movedRecord) error {
	c.next.waiting = append(c.next.waiting, r)
	if size := c.next.size(); size > 0 && size < combinedSize {
		return nil
	}
	return c.flush()
}

// flush puts the combined object, and then adds the records that wait for it.
func (c *combining) flush() error {
	full := c.next
	if full.size() > 0 {
		full.object = ObjectRef{stages.Sum(full.b), full.size()}
		if err := c.put(full); err != nil {
			return err
		}
	}
	for _, r := range full.waiting {
		eachRef(r.items, func(ref *Ref) {
			if at, ok := r.moved[ref.Object]; ok {
				ref.Object, ref.Off = at.to.object, ref.Off+at.off
			}
		})
		if err := c.s.RecordItems(r.group, r.madeBy, r.items); err != nil {
			return err
		}
	}
	c.next = &combined{b: full.b[:0]}
	full.b, full.waiting = nil, nil // moved objects still refer to its name
	return nil
}

func (c *combining) put(full *combined) error {
	s := c.s
	s.damageMu.RLock()
	defer s.damageMu.RUnlock()
	if err := s.setUp(); err != nil {
		return err
	}
	all := func(write func([]byte) error) error { return write(full.b) }
	if err := s.replaceBy(s.objectPath(full.object.Digest), 0o444, true, all); err != nil {
		return err
	}
	s.remember(full.object, nil)
	c.objects, c.bytes = c.objects+1, c.bytes+full.object.Size
	return nil
}
