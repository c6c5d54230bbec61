package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// A shareFile is the file of a share: frames that one process writes from the beginning to the end.
//
//	'N' a note, JSON: first a [ShareStart], and last, when the share ended, a [ShareEnd]
//	'P' an object: the key is its digest, the payload its size as u64; its bytes follow the frame
//	'T' item records, as in items/
//	'M' a memo, as in memo.log
//	'A' an action, as in actions/: in an extract only
//
// A record is written after the objects that it refers to. Readers end at the first frame that isn't whole:
// nothing after it is known to have reached the disk, and the bytes of an object may look like a frame.
type shareFile struct {
	foundShare
	file  *os.File
	state fs.FileInfo // of the file when it was read

	mu      sync.RWMutex // guards what follows
	start   *ShareStart  // nil in a file that isn't a share's
	last    *ShareEnd    // nil until the share ended
	objects map[ObjectRef]int64
	actions map[stages.Digest]span
	groups  map[stages.Digest][]span // item frames, in the order of the file
	items   int                      // that they record
	frames  int                      // of all kinds
	memos   map[stages.Digest][]byte
	end     int64 // of the last whole frame
	altered bool  // what follows it isn't the beginning of a frame
}

const (
	noteFrame   frameKind = 'N'
	objectFrame frameKind = 'P'
)

// A span is the place of a frame.
type span struct {
	off int64
	len int
}

// shareFormat is the format of shares' files. A change of a frame's layout takes another number.
const shareFormat = 1

func newShareFile(found foundShare, f *os.File) *shareFile {
	return &shareFile{foundShare: found, file: f, objects: map[ObjectRef]int64{},
		actions: map[stages.Digest]span{},
		groups:  map[stages.Digest][]span{}, memos: map[stages.Digest][]byte{}}
}

// read reads the frames of a share, but not the bytes of objects. The file stays open.
func (found foundShare) read() (*shareFile, error) {
	file, err := found.openFile()
	if err != nil {
		return nil, err
	}
	f := newShareFile(found, file)
	if f.state, err = file.Stat(); err == nil {
		b := make([]byte, 4<<10) // most frames are smaller
		for n := int64(1); err == nil && n > 0 && f.end < f.state.Size(); f.end += n {
			n, err = f.next(f.state.Size(), b)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// next reads the frame after the last known one, and returns its length and that of its object together, or 0
// if the frame isn't whole. b is a buffer for small frames.
func (f *shareFile) next(size int64, b []byte) (int64, error) {
	left := size - f.end
	b, err := readAt(f.file, f.end, b[:min(left, int64(len(b)))])
	if err != nil {
		return 0, err
	}
	if len(b) < frameLen {
		magic := noteFrame.magic()[:3]
		begun := bytes.HasPrefix(b, magic) || bytes.HasPrefix(magic, b)
		f.altered = !begun && !zero(b)
		return 0, nil
	}
	kind := frameKind(b[3])
	key, payload, n, ok := frameAt(b, kind)
	if !ok && n > len(b) && int64(n) <= left {
		if b, err = readAt(f.file, f.end, make([]byte, n)); err != nil {
			return 0, err
		}
		key, payload, n, ok = frameAt(b, kind)
	}
	if !ok {
		f.altered = n <= len(b) && !zero(b)
		return 0, nil
	}
	more := int64(0)
	if kind == objectFrame && len(payload) == 8 {
		more = int64(binary.LittleEndian.Uint64(payload))
	}
	if more > left-int64(n) {
		return 0, nil
	}
	if more < 0 || !f.add(kind, key, payload, span{f.end, n}) {
		f.altered = true
		return 0, nil
	}
	return int64(n) + more, nil
}

// readAt fills b from a file, and returns less of it if that became shorter.
func readAt(f io.ReaderAt, off int64, b []byte) ([]byte, error) {
	k, err := f.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return b[:k], err
}

// zero reports whether b is all zeros, as space in a file to which nothing was written.
func zero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }

// add adds a whole frame. It reports false for a frame that a share's file can't have.
func (f *shareFile) add(kind frameKind, key stages.Digest, payload []byte, at span) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames++
	switch {
	case f.start == nil:
		var n ShareStart
		if kind != noteFrame || json.Unmarshal(payload, &n) != nil || n.Format != shareFormat {
			return false
		}
		f.start = &n
	case kind == noteFrame:
		var n ShareEnd
		if json.Unmarshal(payload, &n) != nil {
			return false
		}
		f.last = &n
	case kind == objectFrame && len(payload) == 8:
		p := ObjectRef{key, int64(binary.LittleEndian.Uint64(payload))}
		f.objects[p] = at.off + int64(at.len)
	case kind == itemFrame:
		_, _, items, err := decodeItems(payload)
		if err != nil {
			return false
		}
		f.items += len(items)
		f.groups[key] = append(f.groups[key], at)
	case kind == memoFrame:
		f.memos[key] = slices.Clone(payload)
	case kind == actionFrame:
		f.actions[key] = at
	default:
		return false
	}
	return true
}

// eachItemFrame calls fn for the item frames of a group from number from on, and returns how many frames the
// group has.
func (f *shareFile) eachItemFrame(group stages.Digest, from int, fn func(off int64, payload []byte) error) (
	int, error) {
	f.mu.RLock()
	all := f.groups[group]
	f.mu.RUnlock()
	for _, at := range all[min(from, len(all)):] {
		payload, err := readFrame(f.file, at, itemFrame, group)
		if err != nil {
			return from, err
		} else if payload == nil {
			return from, miss("share %s is altered at byte %d", f.name, at.off)
		}
		if err := fn(at.off, payload); err != nil {
			return from, err
		}
	}
	return len(all), nil
}

// eachFrame calls fn for all item frames.
func (f *shareFile) eachFrame(fn frameFunc) error {
	for group := range f.groups {
		if _, err := f.eachItemFrame(group, 0, func(off int64, payload []byte) error {
			fn(off, group, payload)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// records reports whether the file has item records of a group, even if they only say that there are none.
func (f *shareFile) records(group stages.Digest) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.groups[group]) > 0
}

// action returns the record of an action, or nil if there is none or it can't be read.
func (f *shareFile) action(key stages.Digest) []byte {
	at, ok := f.actions[key]
	if !ok {
		return nil
	}
	payload, _ := readFrame(f.file, at, actionFrame, key)
	return payload
}

// has reports whether an object is in the file.
func (f *shareFile) has(o ObjectRef) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, ok := f.objects[o]
	return ok
}

// open returns the bytes of an object.
func (f *shareFile) open(o ObjectRef) (objectBytes, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	off, ok := f.objects[o]
	if !ok {
		return objectBytes{}, os.ErrNotExist
	}
	return objectBytes{io.NewSectionReader(f.file, off, o.Size), func() error { return nil }}, nil
}

// sound reports whether the digest of an object's bytes is its name.
func (f *shareFile) sound(o ObjectRef) bool {
	b, err := f.open(o)
	if err != nil {
		return false
	}
	d, _, err := hashBytes(context.Background(), b)
	return err == nil && d == o.Digest
}

func (f *shareFile) close() { f.file.Close() }
