package store

import (
	"encoding/binary"

	"github.com/runexp/runexp/stages"
)

// nameHash is the FNV-1a hash of a cell's full name. Two names of equal hash would make `why` compare with the wrong
// cell, and nothing worse.
func nameHash(experiment, cell string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{experiment, "\x00", cell} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	return h
}

// Seen notes that a cell was found under key, so that [Store.Latest] returns that
// action rather than the last one executed. It writes only news.
func (s *Store) Seen(experiment, cell string, key stages.Digest) error {
	name := nameHash(experiment, cell)
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if last, ok := s.index.last(name); ok && last == key || s.opts.ReadOnly {
		return nil
	}
	s.index.see(name, key)
	return s.appendIndex(appendFrame(nil, indexFrame, key, binary.LittleEndian.AppendUint64([]byte{seenKind}, name)))
}

// Latest returns what a cell was when it was last executed or seen.
func (s *Store) Latest(experiment, cell string) (Action, bool) {
	s.indexMu.Lock()
	key, ok := s.index.last(nameHash(experiment, cell))
	s.indexMu.Unlock()
	if !ok {
		return Action{}, false
	}
	h, ok := s.Lookup(key, "")
	if !ok {
		return Action{}, false
	}
	a, err := s.Action(h)
	return a, err == nil
}
