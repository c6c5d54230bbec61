package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// A journal is the file of a part: frames that one process writes from the beginning to the end, of these
// kinds.
//
//	'N' a note, JSON: first a [PartNote], and last, when the share ended, a [PartEnd]
//	'P' an object: the key is its digest, the payload its size as u64; its bytes follow the frame
//	'T' item records, as in items/
//	'M' a memo, as in memo.log
//
// A record is written after the objects that it refers to. Readers end at the first frame that isn't whole:
// nothing behind it is known to have reached the disk, and the bytes of an object may look like a frame.
type journal struct {
	name string
	file *os.File

	mu      sync.RWMutex // guards what follows
	head    *PartNote    // nil in a file that isn't a part
	last    *PartEnd     // nil until the share ended
	objects map[ObjectRef]int64
	groups  map[stages.Digest][]span // item frames, in the order of the file
	items   int                      // that they record
	frames  int                      // of all kinds
	memos   map[stages.Digest][]byte
	end     int64 // of the last whole frame
	altered bool  // what is behind it isn't the beginning of a frame
}

const (
	noteFrame   frameKind = 'N'
	objectFrame frameKind = 'P'
)

// A span is where a frame lies.
type span struct {
	off int64
	len int
}

// journalFormat is the format of journals. A change of a frame's layout takes another number.
const journalFormat = 1

func newJournal(name string, f *os.File) *journal {
	return &journal{name: name, file: f, objects: map[ObjectRef]int64{}, groups: map[stages.Digest][]span{},
		memos: map[stages.Digest][]byte{}}
}

// readJournal reads the frames of a part up to a size, but not the objects. It keeps the file open, or closes
// it with an error.
func readJournal(name string, f *os.File, size int64) (j *journal, err error) {
	j = newJournal(name, f)
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
func (j *journal) next(w *window) (int64, error) {
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

// add takes a whole frame, unless it isn't one of a part.
func (j *journal) add(kind frameKind, key stages.Digest, payload []byte, at span) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.frames++
	switch {
	case j.head == nil:
		var n PartNote
		if kind != noteFrame || json.Unmarshal(payload, &n) != nil || n.Format != journalFormat {
			return false
		}
		j.head = &n
	case kind == noteFrame:
		var n PartEnd
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
	default:
		return false
	}
	return true
}

// eachItemFrame calls fn for the item frames of a group from a number on, and returns how many it has.
func (j *journal) eachItemFrame(group stages.Digest, from int, fn func(off int64, payload []byte) error) (
	int, error) {
	j.mu.RLock()
	all := j.groups[group]
	j.mu.RUnlock()
	for _, at := range all[min(from, len(all)):] {
		payload, err := readFrame(j.file, at, itemFrame, group)
		if err != nil {
			return from, err
		} else if payload == nil {
			return from, miss("part %s is altered at byte %d", j.name, at.off)
		}
		if err := fn(at.off, payload); err != nil {
			return from, err
		}
	}
	return len(all), nil
}

// eachFrame calls fn for the item frames.
func (j *journal) eachFrame(fn frameFunc) error {
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

// has reports whether an object lies in the journal.
func (j *journal) has(p ObjectRef) bool {
	j.mu.RLock()
	defer j.mu.RUnlock()
	_, ok := j.objects[p]
	return ok
}

// openObject returns the bytes of an object that lie in the journal.
func (j *journal) openObject(p ObjectRef) (objectBytes, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	off, ok := j.objects[p]
	if !ok {
		return objectBytes{}, os.ErrNotExist
	}
	return objectBytes{io.NewSectionReader(j.file, off, p.Size), func() error { return nil }}, nil
}

func (j *journal) close() { j.file.Close() }

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
