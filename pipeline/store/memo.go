package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/runexp/runexp/stages"
)

func (s *Store) memoPath() string { return filepath.Join(s.dir, "memo.log") }

// Memo returns the value last remembered under key: the digest of a compiled
// program, the state of a review folder. After a kill or damage it may be an older
// value of the same key, so one that changes must be checked against the thing
// itself. The slice must not be changed.
func (s *Store) Memo(key stages.Digest) ([]byte, bool) {
	s.memoMu.Lock()
	defer s.memoMu.Unlock()
	s.loadMemos()
	v, ok := s.memos[key]
	return v, ok
}

// SetMemo remembers val under key. It writes only news. What can't be written is
// remembered as long as the store is open: nothing depends on a memo, so a store on
// a read-only disk serves results as any other.
func (s *Store) SetMemo(key stages.Digest, val []byte) error {
	if s.readOnly {
		return errReadOnly
	}
	if len(val) > maxPayload {
		return fmt.Errorf("a memo of %d bytes, more than %d", len(val), maxPayload)
	}
	s.memoMu.Lock()
	defer s.memoMu.Unlock()
	s.loadMemos()
	if old, ok := s.memos[key]; ok && bytes.Equal(old, val) {
		return nil
	}
	_, err := s.appendLog(s.memoPath(), appendFrame(nil, memoLog, key, val))
	if errors.As(err, new(stop)) {
		return err
	} else if err != nil {
		s.unwritten.Do(func() { s.warn("%v; what was found out is found out again next time", err) })
	}
	s.memos[key] = append([]byte{}, val...)
	return nil
}

func (s *Store) loadMemos() {
	if s.memos != nil {
		return
	}
	s.memos = map[stages.Digest][]byte{}
	b, err := s.readFile(s.memoPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.warn("memos can't be read: %v", err)
	}
	scanLog(b, memoLog, func(_ int, key stages.Digest, payload []byte) { s.memos[key] = payload })
}
