package store

import (
	"bytes"
	"errors"
	"io/fs"
	"sync"

	"github.com/runexp/runexp/stages"
)

// A keyLog is a log whose frames replace older ones of the same key: small facts that are worth remembering,
// and that nothing depends on. So a store on a read-only disk serves results as any other.
type keyLog struct {
	s     *Store
	file  logFile
	batch int // bytes that may be pending, and so be lost by a kill

	mu        sync.Mutex               // guards what follows
	values    map[stages.Digest][]byte // nil until first asked for
	pending   []byte                   // frames to write
	unwritten sync.Once
}

// get returns the value last remembered under key. The caller must not change it.
func (l *keyLog) get(key stages.Digest) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load()
	v, ok := l.values[key]
	return v, ok
}

// set remembers val under key, in a store opened for reading until it is closed. It writes only a changed
// value.
func (l *keyLog) set(key stages.Digest, val []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.load()
	if old, ok := l.values[key]; ok && bytes.Equal(old, val) {
		return nil
	}
	l.values[key] = bytes.Clone(val)
	if l.s.opts.ReadOnly {
		return nil
	}
	if l.pending = appendFrame(l.pending, l.file.kind, key, val); len(l.pending) < l.batch {
		return nil
	}
	return l.write()
}

func (l *keyLog) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write()
}

// write appends the pending frames. It only warns if that fails. The caller holds mu.
func (l *keyLog) write() error {
	if len(l.pending) == 0 {
		return nil
	}
	_, err := l.s.appendLog(l.file, l.pending)
	l.pending = nil
	if err == nil || errors.As(err, new(stop)) {
		return err
	}
	l.unwritten.Do(func() { l.s.warn("%v; what was found out is found out again next time", err) })
	return nil
}

// load reads the file once. The caller holds mu.
func (l *keyLog) load() {
	if l.values != nil {
		return
	}
	l.values = map[stages.Digest][]byte{}
	b, err := l.s.readFile(l.file.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.s.warn("remembered facts can't be read: %v", err)
	}
	scanLog(b, l.file.kind, func(_ int64, key stages.Digest, payload []byte) { l.values[key] = payload })
}

// Memo returns the value last remembered under key: the digest of a compiled program, the state of a review
// folder. After a kill or damage it may be an older value of the same key, so one that changes must be
// checked against the thing itself. The slice must not be changed.
func (s *Store) Memo(key stages.Digest) ([]byte, bool) { return s.memos.get(key) }

// SetMemo remembers val under key. It writes only a changed value. A value that can't be written is
// remembered as long as the store is open.
func (s *Store) SetMemo(key stages.Digest, val []byte) error {
	if err := s.layer.setMemo(key, val); err != nil {
		return err
	}
	return s.memos.set(key, val)
}
