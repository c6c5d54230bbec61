package store

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/stages"
)

// joinedSize is the size in bytes from which on a fold adds an object of a part as it is. Smaller ones are
// joined until together they have that size: a share puts one for each chunk of each cell, and a file server
// takes milliseconds to make a file, and to open it in every later share that reads it.
const joinedSize = 16 << 20

// A joining adds the small objects of parts to a store, in the order of their groups, so that what is
// collected at once lies together. Two folds at once may both add what is in a part, joined to different
// objects: then it's stored twice.
type joining struct {
	s       *Store
	joint   *joint                             // that is being filled
	moved   map[PackRef]moved                  // objects of the bucket
	folders map[string]bool                    // where objects were added
	open    func(p PackRef) (packBytes, error) // an object of a part

	objects int // that were added
	bytes   int64
}

// A joint is an object that others are joined to.
type joint struct {
	pack    PackRef // zero until it's complete
	b       []byte
	waiting []joinedRecord
}

// A moved tells where in a joint an object went.
type moved struct {
	to  *joint
	off int64
}

// A joinedRecord is an item record that waits for a joint.
type joinedRecord struct {
	group  stages.Digest
	madeBy string
	items  []ItemRecord
	moved  map[PackRef]moved
}

func newJoining(s *Store, open func(p PackRef) (packBytes, error)) *joining {
	return &joining{s: s, joint: &joint{}, moved: map[PackRef]moved{}, folders: map[string]bool{}, open: open}
}

// take moves an object of a part to the joint. It reports false for one that isn't small, or in no part. The
// reason why it can't be had is refused.
func (j *joining) take(p PackRef) (at moved, taken bool, refused error) {
	if j == nil || p.Size >= joinedSize {
		return at, false, nil
	}
	if at, taken = j.moved[p]; taken {
		return at, true, nil
	}
	f, err := j.open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return at, false, nil
	}
	off := len(j.joint.b)
	all := slices.Grow(j.joint.b, int(p.Size))[:off+int(p.Size)]
	b := all[off:]
	if err == nil {
		defer f.close()
		_, err = io.ReadFull(f, b)
	}
	switch {
	case err != nil:
		return at, false, miss("object %s can't be read: %v", p.Digest.Short(), err)
	case stages.Sum(b) != p.Digest:
		return at, false, miss("object %s is altered", p.Digest.Short())
	}
	j.joint.b = all
	at = moved{j.joint, int64(off)}
	j.moved[p] = at
	return at, true, nil
}

// add adds a record, when the objects that it refers to are there.
func (j *joining) add(r joinedRecord) error {
	j.joint.waiting = append(j.joint.waiting, r)
	if len(j.joint.b) < joinedSize {
		return nil
	}
	return j.flush()
}

// flush puts the joint, and records what waits for it.
func (j *joining) flush() error {
	full := j.joint
	if len(full.waiting) == 0 {
		return nil
	}
	full.pack = PackRef{stages.Sum(full.b), int64(len(full.b))}
	if err := j.put(full); err != nil {
		return err
	}
	j.joint = &joint{b: full.b[:0]}
	for _, r := range full.waiting {
		eachRef(r.items, func(ref *Ref) {
			if at, ok := r.moved[ref.Pack]; ok {
				ref.Pack, ref.Off = at.to.pack, ref.Off+at.off
			}
		})
		if err := j.s.RecordItems(r.group, r.madeBy, r.items); err != nil {
			return err
		}
	}
	return nil
}

func (j *joining) put(full *joint) error {
	s, path := j.s, j.s.packPath(full.pack.Digest)
	s.damageMu.RLock()
	defer s.damageMu.RUnlock()
	if err := s.setUp(); err != nil {
		return err
	}
	all := func(write func([]byte) error) error { return write(full.b) }
	if err := s.replaceBy(path, 0o444, true, all); err != nil {
		return err
	}
	s.remember(full.pack, nil)
	j.folders[filepath.Dir(path)] = true
	j.objects, j.bytes = j.objects+1, j.bytes+full.pack.Size
	return nil
}
