package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/runexp/runexp/stages"
)

// A layer is what a store writes to and reads from: the logs and objects of its folder, or the file of a
// share over a folder that is only read.
type layer interface {
	// append appends a record, and returns the place of its frame and its length.
	append(kind frameKind, key stages.Digest, payload []byte) (off int64, n int, err error)
	// put writes an object that consists of pieces, unless it is there.
	put(o ObjectRef, pieces [][]byte) error
	// open opens an object.
	open(o ObjectRef) (objectBytes, error)
	// action reads the action of a hit. The error is a [*Miss].
	action(h Hit) (Action, error)
	// readItems adds to a group the records that it lacks.
	readItems(g *knownGroup) error
	// setMemo writes a memo that is only the layer's, or returns why memos can't be remembered.
	setMemo(key stages.Digest, val []byte) error
	// close ends the use of the layer.
	close() error
}

// A folder is the layer of an ordinary store.
type folder struct{ s *Store }

func (l folder) append(kind frameKind, key stages.Digest, payload []byte) (off int64, n int, err error) {
	frame := appendFrame(nil, kind, key, payload)
	off, err = l.s.appendLog(l.s.log(kind, key), frame)
	return off, len(frame), err
}

// put replaces a file of the wrong size.
func (l folder) put(o ObjectRef, pieces [][]byte) error {
	path := l.s.objectPath(o.Digest)
	if size, err := l.s.size(path); err == nil && size == o.Size {
		return nil
	}
	return l.s.writeFile(path, 0o444, pieces...)
}

func (l folder) open(o ObjectRef) (objectBytes, error) {
	f, done, err := l.s.readKept(l.s.objectPath(o.Digest))
	if err != nil {
		return objectBytes{}, err
	}
	info, err := f.Stat()
	if err != nil {
		done()
		return objectBytes{}, err
	}
	return objectBytes{io.NewSectionReader(f, 0, info.Size()), done}, nil
}

func (l folder) action(h Hit) (Action, error) {
	f, done, err := l.s.readKept(l.s.log(actionFrame, h.key).path)
	var found *Action
	if err == nil {
		defer done()
		take := func(_ int64, key stages.Digest, payload []byte) {
			if a, ok := h.decode(key, payload); ok {
				found = &a
			}
		}
		off, n := h.span()
		if _, err = scanFile(f, off, off+int64(n), actionFrame, take); found == nil {
			// The log may have been rewritten since: the record is elsewhere in it.
			_, err = readOpenLog(f, 0, actionFrame, take)
		}
	}
	switch {
	case found != nil:
		return *found, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Action{}, miss("the record of action %s can't be read: %v", h.key.Short(), err)
	}
	return Action{}, miss("the record of action %s is missing or damaged", h.key.Short())
}

func (l folder) readItems(g *knownGroup) error { return g.readLog(l.s) }

func (l folder) setMemo(stages.Digest, []byte) error {
	if l.s.opts.ReadOnly {
		return errReadOnly
	}
	return nil
}

func (l folder) close() error { return nil }

// record records a payload under a key, and returns the place of its frame.
func (s *Store) record(kind frameKind, key stages.Digest, payload []byte) (off int64, n int, err error) {
	if len(payload) > maxPayload {
		return 0, 0, fmt.Errorf("a record has %d bytes, more than %d: %q", len(payload), maxPayload,
			s.log(kind, key).path)
	}
	return s.layer.append(kind, key, payload)
}
