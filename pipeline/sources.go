package pipeline

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A sourceList is what a stage reads from outside, and the digests of the files.
type sourceList struct {
	rows  *store.Rows // id, file, note and, for a file, its digest
	files bool        // some are files
}

func (l *sourceList) len() int {
	if l == nil {
		return 0
	}
	return l.rows.Len()
}

// A sourceRow is a source as it lies in the spool.
type sourceRow struct {
	id, path, note []byte
	file           stages.Digest // of the file's bytes, zero without one
}

func (l *sourceList) row(i int) (r sourceRow, err error) {
	b, err := l.rows.At(i)
	if err != nil {
		return r, err
	}
	for _, text := range []*[]byte{&r.id, &r.path, &r.note} {
		n, w := binary.Uvarint(b)
		*text, b = b[w:w+int(n)], b[w+int(n):]
	}
	copy(r.file[:], b)
	return r, nil
}

// source returns it as a stage gets it.
func (r *sourceRow) source() stages.Source {
	return stages.Source{ID: string(r.id), File: string(r.path), Note: string(r.note)}
}

// digest names its content: the file's bytes and the note.
func (r *sourceRow) digest() stages.Digest {
	h := newHasher("source")
	h.bytes(r.note)
	h.digest(r.file)
	return h.sum()
}

// all returns all sources.
func (l *sourceList) all() ([]stages.Source, error) {
	list := make([]stages.Source, l.len())
	for i := range list {
		r, err := l.row(i)
		if err != nil {
			return nil, err
		}
		list[i] = r.source()
	}
	return list, nil
}

// unchanged returns an error if the file of a source has other bytes than it had.
func (l *sourceList) unchanged(s *store.Store, i int) error {
	if !l.files {
		return nil
	}
	r, err := l.row(i)
	if err != nil || len(r.path) == 0 {
		return err
	}
	return s.FileUnchanged(string(r.path), r.file)
}

// sourcesOf asks a stage for what it reads from outside.
func (r *resolver) sourcesOf(n *node) error {
	if n.Stage.Primary() >= 0 {
		return r.joinedSources(n)
	}
	sources, err := n.Cell.Sources(nil)
	if err != nil {
		return err
	}
	if n.Stage.Relation != stages.Whole {
		if r.plan.Limit > 0 && len(sources) > r.plan.Limit {
			sources = sources[:r.plan.Limit]
		}
		if len(sources) == 0 {
			return plan.ErrNoItem
		}
		if err := unique(sources); err != nil {
			return err
		}
	}
	return r.keepSources(n, sources)
}

func unique(sources []stages.Source) error {
	if len(sources) == 1 {
		return nil
	}
	seed := maphash.MakeSeed()
	var seen store.RowIndex
	for i := range sources {
		same := func(k int) (bool, error) { return sources[k].ID == sources[i].ID, nil }
		hash := uint32(maphash.String(seed, sources[i].ID))
		first, err := seen.Find(hash, same)
		if err == nil {
			err = seen.Set(hash, i, same)
		}
		switch {
		case err != nil:
			return err
		case first >= 0:
			return fmt.Errorf("two items are called %q", sources[i].ID)
		}
	}
	return nil
}

// keepSources digests the files of sources and makes them n's.
func (r *resolver) keepSources(n *node, sources []stages.Source) error {
	l := &sourceList{rows: r.store.NewRows()}
	b := make([]byte, 0, 256)
	for i := range sources {
		s := &sources[i]
		b = b[:0]
		for _, text := range []string{s.ID, s.File, s.Note} {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
		if s.File != "" {
			d, _, err := r.store.FileDigest(s.File)
			if err != nil {
				return fmt.Errorf("%s: %w", s.ID, err)
			}
			b = append(b, d[:]...)
			l.files = true
		}
		if err := l.rows.Append(b); err != nil {
			return err
		}
	}
	n.sources = l
	return nil
}

// sourceNames writes the ids of n's sources.
func (n *node) sourceNames(h *hasher) error {
	for i := range n.sources.len() {
		r, err := n.sources.row(i)
		if err != nil {
			return err
		}
		h.bytes(r.id)
	}
	return nil
}

// sourceDigests writes the digests of n's sources.
func (n *node) sourceDigests(h *hasher) error {
	for i := range n.sources.len() {
		r, err := n.sources.row(i)
		if err != nil {
			return err
		}
		h.digest(r.digest())
	}
	return nil
}

// joinedSources asks a stage with both items and sources for the sources of
// its items.
func (r *resolver) joinedSources(n *node) error {
	ids, err := r.primaryIDs(n)
	if err != nil {
		return err
	}
	texts, err := ids.texts()
	if err != nil {
		return err
	}
	sources, err := n.Cell.Sources(texts)
	if err != nil {
		return err
	}
	if len(sources) != len(texts) {
		return plan.Bug("stage %s lists %d sources for %d items", n.Stage.Name, len(sources), len(texts))
	}
	return r.keepSources(n, sources)
}
