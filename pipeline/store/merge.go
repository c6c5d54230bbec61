package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A MergeReport counts what a merge added.
type MergeReport struct {
	Actions, ActionsKnown int // executed cells, and those that were there already
	Items, ItemsKnown     int // records of items
	Objects               int
	Bytes                 int64    // of objects
	Refused               []string // records that weren't added, each with its file and the reason
}

// Merge adds the contents of another store, which it doesn't trust: it refuses an object whose bytes don't
// have the digest in its name, and a record that isn't whole or refers to such an object. What this store has
// stays, and the other store isn't changed. Memos and digests of files aren't added, since they are about the
// machine that recorded them. Merge can't check that a result is that of its key, and trusts it.
//
// Interrupted at any moment and called again, it adds the rest.
func (s *Store) Merge(ctx context.Context, other *Store) (MergeReport, error) {
	m := &merging{s: s, open: other.layer.open, ctx: ctx, objects: map[ObjectRef]error{}}
	if s.opts.ReadOnly {
		return m.MergeReport, errReadOnly
	}
	if here, err := os.Stat(s.dir); err == nil {
		if there, err := os.Stat(other.dir); err == nil && os.SameFile(here, there) {
			return m.MergeReport, fmt.Errorf("store %q is the store itself", other.dir)
		}
	}
	logs, err := other.logs(itemFrame, actionFrame) // items first: a run reads none once the action is there
	if err != nil {
		return m.MergeReport, err
	}
	for _, log := range logs {
		if err := m.log(other, log); err != nil {
			return m.MergeReport, err
		}
	}
	shares, err := other.shareFiles()
	if err != nil {
		return m.MergeReport, err
	}
	added, err := s.mergeShares(ctx, shares, func(*mergedShare) error { return nil })
	m.add(added)
	return m.MergeReport, err
}

// add adds the counts of another report.
func (r *MergeReport) add(o MergeReport) {
	r.Actions, r.ActionsKnown = r.Actions+o.Actions, r.ActionsKnown+o.ActionsKnown
	r.Items, r.ItemsKnown = r.Items+o.Items, r.ItemsKnown+o.ItemsKnown
	r.Objects, r.Bytes = r.Objects+o.Objects, r.Bytes+o.Bytes
	r.Refused = append(r.Refused, o.Refused...)
}

// A merging adds the contents of another store, or of a share, to a store.
type merging struct {
	MergeReport
	s       *Store
	open    func(p ObjectRef) (objectBytes, error) // an object of the other side
	ctx     context.Context
	objects map[ObjectRef]error // why they weren't added: nil if they are here now
	combine *combining          // of the objects of shares; nil for those of a store
	added   bool                // not all was here before the merge began
}

// log adds the frames of one of the other store's logs.
func (m *merging) log(other *Store, file logFile) error {
	name := filepath.ToSlash(strings.TrimPrefix(file.path, other.dir+string(filepath.Separator)))
	known, err := m.s.knownFrames(file, func(stages.Digest) bool { return true })
	if err != nil {
		return err
	}
	add := m.outcomes
	if file.kind == actionFrame {
		add = m.action
	}
	var failed error
	scan, err := other.readLog(file, 0, func(off int64, key stages.Digest, payload []byte) {
		if failed == nil {
			failed = add(name, file, off, key, payload, known)
		}
	})
	if err = errors.Join(failed, err); err == nil && scan.altered > 0 {
		m.refuse(name, "%d bytes are damaged", scan.altered)
	}
	return err
}

// A knownFrames has the digests of the frames in a log of the store; for item records those of their outcomes
// (see outcomesDigest). The value is true for frames that were there before the merge.
type knownFrames map[stages.Digest]bool

// knownFrames reads the frames of some keys from a log: all actions, and the item records whose objects are
// here.
func (s *Store) knownFrames(file logFile, some func(key stages.Digest) bool) (knownFrames, error) {
	known := knownFrames{}
	missing := func(p ObjectRef) bool { return s.Check(p) != nil }
	_, err := s.readLog(s.log(file.kind, stages.Digest{file.bucket}), 0,
		func(_ int64, key stages.Digest, payload []byte) {
			if !some(key) {
				return
			} else if file.kind == actionFrame {
				known[frameDigest(key, payload)] = true
				return
			}
			madeBy, objects, items, err := decodeItems(payload)
			if err == nil && !slices.ContainsFunc(objects, missing) {
				known[outcomesDigest(key, madeBy, items)] = true
			}
		})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return known, err
}

func frameDigest(key stages.Digest, payload []byte) stages.Digest {
	return stages.Sum(append(bytes.Clone(key[:]), payload...))
}

// outcomesDigest returns the digest of an item record's outcomes, which doesn't depend on the places of
// payloads.
func outcomesDigest(group stages.Digest, madeBy string, items []ItemRecord) stages.Digest {
	var t objectTable
	b := appendText(bytes.Clone(group[:]), madeBy)
	for _, it := range items {
		b = appendUint(append(b, it.Key[:]...), uint64(len(it.Ports)))
		for _, port := range it.Ports {
			b = appendUint(b, uint64(len(port)))
			for _, sub := range port {
				if sub.Object != (ObjectRef{}) {
					sub.Object, sub.Off = ObjectRef{Size: 1}, 0
				}
				b = t.appendRef(appendText(b, sub.ID), sub.Ref)
			}
		}
	}
	return stages.Sum(b)
}

// outcomes adds an item record of a file and the objects to which it refers, unless the record is known or is
// refused. An error ends the merge.
func (m *merging) outcomes(name string, file logFile, off int64, group stages.Digest, payload []byte,
	known knownFrames) error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	madeBy, objects, items, err := decodeItems(payload)
	if err != nil || group[0] != file.bucket {
		m.refuse(name, "%v, at byte %d", errMalformed, off)
		return nil
	}
	digest := outcomesDigest(group, madeBy, items)
	before, isKnown := known[digest]
	m.added = m.added || !before
	if isKnown {
		m.ItemsKnown++
		return nil
	}
	record := movedRecord{group, madeBy, items, map[ObjectRef]moved{}}
	undo := m.combine.mark()
	for _, p := range objects {
		at, taken := m.combine.take(p)
		if taken {
			record.moved[p] = at
			continue
		}
		refused, err := m.object(p)
		if err != nil {
			return err
		}
		if refused != nil {
			m.refuse(name, "%v, at byte %d", refused, off)
			undo()
			return nil
		}
	}
	m.Items++
	known[digest] = false
	if len(record.moved) > 0 {
		return m.combine.add(record)
	}
	_, _, err = m.s.record(itemFrame, group, payload)
	return err
}

// action is outcomes for the record of an action.
func (m *merging) action(name string, file logFile, off int64, key stages.Digest, payload []byte,
	known knownFrames) error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	r, err := file.record(off, key, payload)
	if err != nil {
		m.refuse(name, "%v, at byte %d", err, off)
		return nil
	}
	if m.has(key, r.madeBy) {
		m.ActionsKnown++
		return nil
	}
	digest := frameDigest(key, payload)
	isKnown := known[digest] // but not all its objects are here
	for _, p := range r.objects {
		refused, err := m.object(p)
		if err != nil {
			return err
		}
		if refused != nil && !isKnown {
			m.refuse(name, "%v, at byte %d", refused, off)
			return nil
		}
	}
	if isKnown {
		m.ActionsKnown++
		return nil
	}
	for i := range r.outputs {
		if _, err := m.s.listing(&r.outputs[i]); err != nil {
			m.refuse(name, "%v, at byte %d", err, off)
			return nil
		}
	}
	m.Actions++
	known[digest] = true
	a, err := decodeAction(key, payload)
	if err != nil {
		return err // unreachable: it was decoded above
	}
	return m.s.recordAction(&a, payload)
}

// has reports whether this store has an executed cell of a key and a class of device, with its objects.
func (m *merging) has(key stages.Digest, madeBy string) bool {
	h, ok := m.s.Lookup(key, madeBy)
	if !ok || h.MadeBy() != madeBy {
		return false
	}
	for p := range h.Objects() {
		if m.s.Check(p) != nil {
			return false
		}
	}
	return true
}

// object makes sure that an object is here. If it can't be added, refused is the reason.
func (m *merging) object(p ObjectRef) (refused, err error) {
	refused, known := m.objects[p]
	if known || m.s.Check(p) == nil {
		return refused, nil
	}
	refused, err = m.copyObject(p)
	if err != nil {
		return nil, err
	}
	if m.objects[p] = refused; refused == nil {
		m.added = true
		m.Objects++
		m.Bytes += p.Size
	}
	return refused, nil
}

// copyObject copies an object. It appears only if the digest of all its bytes is its name; otherwise refused
// is the reason.
func (m *merging) copyObject(p ObjectRef) (refused, err error) {
	f, e := m.open(p)
	if e != nil {
		return objectMiss(p, 0, e), nil
	}
	defer f.close()
	s, path := m.s, m.s.objectPath(p.Digest)
	if err := s.setUp(); err != nil {
		return nil, err
	}
	s.damageMu.RLock()
	defer s.damageMu.RUnlock()
	err = s.replaceBy(path, 0o444, m.combine != nil, func(write func([]byte) error) error {
		h := sha256.New()
		b := make([]byte, 1<<20)
		for left := p.Size; left > 0; {
			if m.ctx.Err() != nil {
				return context.Cause(m.ctx)
			}
			n, e := io.ReadFull(f, b[:min(int64(len(b)), left)])
			if e != nil {
				refused = miss("object %s can't be read: %v", p.Digest.Short(), e)
				return refused
			}
			h.Write(b[:n])
			if err := write(b[:n]); err != nil {
				return err
			}
			left -= int64(n)
		}
		if n, _ := f.Read(b[:1]); n > 0 || stages.Digest(h.Sum(nil)) != p.Digest {
			refused = miss("object %s is altered", p.Digest.Short())
		}
		return refused
	})
	if refused != nil {
		return refused, nil
	}
	if err == nil {
		s.remember(p, nil)
	}
	return nil, err
}

func (m *merging) refuse(file, format string, args ...any) {
	m.Refused = append(m.Refused, file+": "+fmt.Sprintf(format, args...))
}
