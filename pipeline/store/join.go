package store

import (
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/stages"
)

// joinedSize is the size in bytes from which on a fold adds an object of a part as it is. Smaller ones are
// joined until together they have that size: a share puts one for each chunk of each cell, and a file server
// takes milliseconds to make a file, and to open it in every later share that reads it. Tests change it.
var joinedSize int64 = 16 << 20

// A joining adds the small objects of parts to a store, bucket by bucket of groups, so that what is collected
// at once lies together. It costs that some bytes are stored twice: those of equal objects that groups of two
// buckets refer to, or that are in different folds, be it two at once.
type joining struct {
	s       *Store
	joint   *joint                                 // that is being filled
	moved   map[ObjectRef]moved                    // objects of the bucket
	folders map[string]bool                        // where objects were added
	open    func(p ObjectRef) (objectBytes, error) // an object of a part

	objects int // that were added
	bytes   int64
}

// A joint is an object that others are joined to.
type joint struct {
	object  ObjectRef // zero until it's complete
	b       []byte
	waiting []joinedRecord
}

// A moved tells where in a joint an object went.
type moved struct {
	to  *joint
	off int64
}

// A joinedRecord is an item record that waits for the joints that it refers to, of which at most the last one
// isn't complete.
type joinedRecord struct {
	group  stages.Digest
	madeBy string
	items  []ItemRecord
	moved  map[ObjectRef]moved
}

func newJoining(s *Store, open func(p ObjectRef) (objectBytes, error)) *joining {
	return &joining{s: s, joint: &joint{}, moved: map[ObjectRef]moved{}, folders: map[string]bool{}, open: open}
}

// take moves an object of a part to the joint. It reports false for one that isn't in a part, isn't sound
// there, or is too large for what room is left: that isn't joined.
func (j *joining) take(p ObjectRef) (at moved, taken bool) {
	if j == nil {
		return at, false
	}
	if at, taken = j.moved[p]; taken || p.Size >= joinedSize || j.joint.size() >= joinedSize {
		return at, taken
	}
	f, err := j.open(p)
	if err != nil {
		return at, false
	}
	defer f.close()
	at = moved{j.joint, j.joint.size()}
	all := slices.Grow(j.joint.b, int(p.Size))[:at.off+p.Size]
	if _, err := io.ReadFull(f, all[at.off:]); err != nil || stages.Sum(all[at.off:]) != p.Digest {
		return at, false
	}
	j.joint.b = all
	j.moved[p] = at
	return at, true
}

func (j *joint) size() int64 { return int64(len(j.b)) }

// mark returns what undoes the takes that follow.
func (j *joining) mark() (undo func()) {
	if j == nil {
		return func() {}
	}
	size := j.joint.size()
	return func() {
		j.joint.b = j.joint.b[:size]
		maps.DeleteFunc(j.moved, func(_ ObjectRef, at moved) bool { return at.to == j.joint && at.off >= size })
	}
}

// add adds a record, when the objects that it refers to are there.
func (j *joining) add(r joinedRecord) error {
	j.joint.waiting = append(j.joint.waiting, r)
	if size := j.joint.size(); size > 0 && size < joinedSize {
		return nil
	}
	return j.flush()
}

// flush puts the joint, and records what waits for it.
func (j *joining) flush() error {
	full := j.joint
	if full.size() > 0 {
		full.object = ObjectRef{stages.Sum(full.b), full.size()}
		if err := j.put(full); err != nil {
			return err
		}
	}
	for _, r := range full.waiting {
		eachRef(r.items, func(ref *Ref) {
			if at, ok := r.moved[ref.Object]; ok {
				ref.Object, ref.Off = at.to.object, ref.Off+at.off
			}
		})
		if err := j.s.RecordItems(r.group, r.madeBy, r.items); err != nil {
			return err
		}
	}
	j.joint = &joint{b: full.b[:0]}
	full.b, full.waiting = nil, nil // those that moved there still lead to its name
	return nil
}

func (j *joining) put(full *joint) error {
	s, path := j.s, j.s.objectPath(full.object.Digest)
	s.damageMu.RLock()
	defer s.damageMu.RUnlock()
	if err := s.setUp(); err != nil {
		return err
	}
	all := func(write func([]byte) error) error { return write(full.b) }
	if err := s.replaceBy(path, 0o444, true, all); err != nil {
		return err
	}
	s.remember(full.object, nil)
	j.folders[filepath.Dir(path)] = true
	j.objects, j.bytes = j.objects+1, j.bytes+full.object.Size
	return nil
}
