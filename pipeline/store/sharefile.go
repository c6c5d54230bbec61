package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
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
	name string
	file *os.File

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

func newShareFile(name string, f *os.File) *shareFile {
	return &shareFile{name: name, file: f, objects: map[ObjectRef]int64{}, actions: map[stages.Digest]span{},
		groups: map[stages.Digest][]span{}, memos: map[stages.Digest][]byte{}}
}

// readShareFile reads the frames of a file up to a size, without the objects. It keeps the file open, or
// closes it with an error.
func readShareFile(name string, f *os.File, size int64) (j *shareFile, err error) {
	j = newShareFile(name, f)
	w := window{f: f, size: size}
	for n := int64(1); err == nil && n > 0 && j.end < size; j.end += n {
		n, err = j.next(&w)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// next takes the frame at j.end, and returns its length with that of its object: 0 if it isn't whole.
func (j *shareFile) next(w *window) (int64, error) {
	b, err := w.at(j.end, frameLen)
	if err != nil {
		return 0, err
	}
	if len(b) < frameLen {
		magic := noteFrame.magic()[:3]
		begun := bytes.HasPrefix(b, magic) || bytes.HasPrefix(magic, b)
		j.altered = !begun && !zero(b)
		return 0, nil
	}
	if size := binary.LittleEndian.Uint32(b[4:]); size <= maxPayload {
		if b, err = w.at(j.end, frameLen+int(size)); err != nil {
			return 0, err
		}
	}
	kind := frameKind(b[3])
	key, payload, n, ok := frameAt(b, kind)
	if !ok {
		j.altered = n <= len(b) && !zero(b)
		return 0, nil
	}
	more := int64(0)
	if kind == objectFrame && len(payload) == 8 {
		more = int64(binary.LittleEndian.Uint64(payload))
	}
	if more > w.size-j.end-int64(n) {
		return 0, nil
	}
	if more < 0 || !j.add(kind, key, payload, span{j.end, n}) {
		j.altered = true
		return 0, nil
	}
	return int64(n) + more, nil
}

// zero reports whether b is room that nothing was written to.
func zero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }

// add takes a whole frame, unless it isn't one of a share.
func (j *shareFile) add(kind frameKind, key stages.Digest, payload []byte, at span) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.frames++
	switch {
	case j.start == nil:
		var n ShareStart
		if kind != noteFrame || json.Unmarshal(payload, &n) != nil || n.Format != shareFormat {
			return false
		}
		j.start = &n
	case kind == noteFrame:
		var n ShareEnd
		if json.Unmarshal(payload, &n) != nil {
			return false
		}
		j.last = &n
	case kind == objectFrame && len(payload) == 8:
		p := ObjectRef{key, int64(binary.LittleEndian.Uint64(payload))}
		j.objects[p] = at.off + int64(at.len)
	case kind == itemFrame:
		_, _, items, err := decodeItems(payload)
		if err != nil {
			return false
		}
		j.items += len(items)
		j.groups[key] = append(j.groups[key], at)
	case kind == memoFrame:
		j.memos[key] = slices.Clone(payload)
	case kind == actionFrame:
		j.actions[key] = at
	default:
		return false
	}
	return true
}

// eachItemFrame calls fn for the item frames of a group from a number on, and returns how many it has.
func (j *shareFile) eachItemFrame(group stages.Digest, from int, fn func(off int64, payload []byte) error) (
	int, error) {
	j.mu.RLock()
	all := j.groups[group]
	j.mu.RUnlock()
	for _, at := range all[min(from, len(all)):] {
		payload, err := readFrame(j.file, at, itemFrame, group)
		if err != nil {
			return from, err
		} else if payload == nil {
			return from, miss("share %s is altered at byte %d", j.name, at.off)
		}
		if err := fn(at.off, payload); err != nil {
			return from, err
		}
	}
	return len(all), nil
}

// eachFrame calls fn for the item frames.
func (j *shareFile) eachFrame(fn frameFunc) error {
	for group := range j.groups {
		if _, err := j.eachItemFrame(group, 0, func(off int64, payload []byte) error {
			fn(off, group, payload)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// records reports whether the file has item records of a group, be it only that there are none.
func (j *shareFile) records(group stages.Digest) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.groups[group]) > 0
}

// action returns the record of an action, nil for none: one that can't be read isn't there.
func (j *shareFile) action(key stages.Digest) []byte {
	at, ok := j.actions[key]
	if !ok {
		return nil
	}
	payload, _ := readFrame(j.file, at, actionFrame, key)
	return payload
}

// has reports whether the file has an object.
func (j *shareFile) has(o ObjectRef) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	_, ok := j.objects[o]
	return ok
}

// open returns the bytes of an object.
func (j *shareFile) open(o ObjectRef) (objectBytes, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	off, ok := j.objects[o]
	if !ok {
		return objectBytes{}, os.ErrNotExist
	}
	return objectBytes{io.NewSectionReader(j.file, off, o.Size), func() error { return nil }}, nil
}

// sound reports whether an object has the bytes of its name.
func (j *shareFile) sound(o ObjectRef) bool {
	b, err := j.open(o)
	if err != nil {
		return false
	}
	d, _, err := hashBytes(context.Background(), b)
	return err == nil && d == o.Digest
}

func (j *shareFile) close() { j.file.Close() }

// A window reads a file of which neighbouring pieces are asked for.
type window struct {
	f    io.ReaderAt
	size int64 // up to which it's read
	off  int64 // of b
	b    []byte
}

// at returns n bytes from off on, fewer at the end of the file. They're valid until the next call.
func (w *window) at(off int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.size-off))
	if off < w.off || off+int64(n) > w.off+int64(len(w.b)) {
		k := int(min(int64(max(n, 16<<10)), w.size-off))
		w.b = slices.Grow(w.b[:0], k)[:k]
		k, err := w.f.ReadAt(w.b, off)
		if err != nil && err != io.EOF {
			return nil, err
		}
		w.off, w.b = off, w.b[:k]
	}
	b := w.b[off-w.off:]
	return b[:min(n, len(b))], nil
}
