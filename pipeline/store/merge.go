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
	"strings"

	"github.com/runexp/runexp/stages"
)

// A MergeReport tells what a merge added.
type MergeReport struct {
	Actions, ActionsKnown int // executed cells, and those that were there already
	Items, ItemsKnown     int // records of items
	Objects               int
	Bytes                 int64    // of objects
	Refused               []string // records that can't be had, each with its file and the reason
}

// Merge adds what another store holds, as one does with a stranger's: an object must have the bytes of its
// name, a record must be whole and lead to objects that do, or it's refused. What is here already stays, and
// so does all of the other store. Facts and digests of files aren't taken: they are about the machine that
// noted them. That a result is what its key asks for can't be seen; that is believed.
//
// Interrupted at any moment and called again, it adds the rest.
func (s *Store) Merge(ctx context.Context, other *Store) (MergeReport, error) {
	m := &merging{s: s, other: other, ctx: ctx, packs: map[PackRef]error{}}
	if s.opts.ReadOnly {
		return m.MergeReport, errReadOnly
	}
	if here, err := os.Stat(s.dir); err == nil {
		if there, err := os.Stat(other.dir); err == nil && os.SameFile(here, there) {
			return m.MergeReport, fmt.Errorf("store %q is the store itself", other.dir)
		}
	}
	logs, err := other.logs(itemFrame, actionFrame) // items first: an action may end the work on them
	if err != nil {
		return m.MergeReport, err
	}
	for _, log := range logs {
		if err := m.log(log); err != nil {
			return m.MergeReport, err
		}
	}
	return m.MergeReport, nil
}

type merging struct {
	MergeReport
	s, other *Store
	ctx      context.Context
	packs    map[PackRef]error // what became of them: nil if they are here now
}

// log adds the frames of one of the other store's logs.
func (m *merging) log(file logFile) error {
	known, err := m.known(file)
	if err != nil {
		return err
	}
	var failed error
	scan, err := m.other.readLog(file, 0, func(off int64, key stages.Digest, payload []byte) {
		if failed == nil {
			failed = m.frame(file, off, key, payload, known)
		}
	})
	if err = errors.Join(failed, err); err == nil && scan.altered > 0 {
		m.refuse(file.path, "%d bytes are damaged", scan.altered)
	}
	return err
}

// known returns the digests of the frames that this store's log of the same bucket has.
func (m *merging) known(file logFile) (map[stages.Digest]bool, error) {
	known := map[stages.Digest]bool{}
	_, err := m.s.readLog(m.s.log(file.kind, stages.Digest{file.bucket}), 0,
		func(_ int64, key stages.Digest, payload []byte) { known[frameDigest(key, payload)] = true })
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return known, err
}

func frameDigest(key stages.Digest, payload []byte) stages.Digest {
	return stages.Sum(append(bytes.Clone(key[:]), payload...))
}

// frame adds one frame, unless it's known or can't be had. An error ends the merge.
func (m *merging) frame(file logFile, off int64, key stages.Digest, payload []byte,
	known map[stages.Digest]bool) error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	r, err := file.record(off, key, payload)
	if err != nil {
		m.refuse(file.path, "%v, at byte %d", err, off)
		return nil
	}
	added, there := &m.Items, &m.ItemsKnown
	if file.kind == actionFrame {
		added, there = &m.Actions, &m.ActionsKnown
	}
	if known[frameDigest(key, payload)] || file.kind == actionFrame && m.has(key, r.madeBy) {
		*there++
		return nil
	}
	for _, p := range r.packs {
		refused, err := m.pack(p)
		if err != nil {
			return err
		}
		if refused != nil {
			m.refuse(file.path, "%v, at byte %d", refused, off)
			return nil
		}
	}
	for i := range r.outputs {
		if _, err := m.s.listing(&r.outputs[i]); err != nil {
			m.refuse(file.path, "%v, at byte %d", err, off)
			return nil
		}
	}
	*added++
	if file.kind == actionFrame {
		a, err := decodeAction(key, payload)
		if err != nil {
			return err // unreachable: it was decoded above
		}
		return m.s.recordAction(&a, payload)
	}
	_, _, err = m.s.record(file.kind, key, payload)
	return err
}

// has reports whether this store has an executed cell of a key and a class of device, with its objects.
func (m *merging) has(key stages.Digest, madeBy string) bool {
	h, ok := m.s.Lookup(key, madeBy)
	if !ok || h.MadeBy() != madeBy {
		return false
	}
	for p := range h.Packs() {
		if m.s.Check(p) != nil {
			return false
		}
	}
	return true
}

// pack makes sure that an object is here. The reason why it can't be had is refused.
func (m *merging) pack(p PackRef) (refused, err error) {
	refused, known := m.packs[p]
	if known || m.s.Check(p) == nil {
		return refused, nil
	}
	refused, err = m.s.copyPack(m.ctx, m.other, p)
	if err != nil {
		return nil, err
	}
	if m.packs[p] = refused; refused == nil {
		m.Objects++
		m.Bytes += p.Size
	}
	return refused, nil
}

// copyPack copies an object of another store. It appears when all its bytes are found to be those of its
// name; if they aren't, that's refused.
func (s *Store) copyPack(ctx context.Context, other *Store, p PackRef) (refused, err error) {
	f, e := other.read(other.packPath(p.Digest))
	if e != nil {
		return packMiss(p, 0, e), nil
	}
	defer f.Close()
	if err := s.setUp(); err != nil {
		return nil, err
	}
	s.damageMu.RLock()
	defer s.damageMu.RUnlock()
	err = s.replaceBy(s.packPath(p.Digest), 0o444, func(write func([]byte) error) error {
		h := sha256.New()
		b := make([]byte, 1<<20)
		for left := p.Size; left > 0; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
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

func (m *merging) refuse(path, format string, args ...any) {
	file := filepath.ToSlash(strings.TrimPrefix(path, m.other.dir+string(filepath.Separator)))
	m.Refused = append(m.Refused, file+": "+fmt.Sprintf(format, args...))
}
