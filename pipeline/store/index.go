package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/runexp/runexp/stages"
)

// The index has everything that a run that executes nothing reads. It's derived from the action logs, and
// records how much of each log it covers: opening the store reads the rest of the logs. So it may be deleted
// or damaged, or lack what a killed process or another one wrote.
//
// Payloads by their first byte, fixed-width so that the length is the whole check:
//
//	'e' an action: an entryHead, made_by, an entryOutput for each output, a ObjectRef for each object
//	'm' a mark: the log of the key's first byte is known up to u64
//	's' seen: the cell called u64 was last found under this key

const (
	entryKind = 'e'
	markKind  = 'm'
	seenKind  = 's'

	entryLen  = 1 + 8 + 4 + 8 + 1 + 2 + 4
	outputLen = 1 + 4 + keyLen
	objectLen = keyLen + 8
)

type entryHead struct {
	Kind    byte
	Off     uint64 // of the action's frame in its log
	Len     uint32 // of that frame
	Name    uint64 // of the cell: see nameHash
	MadeBy  uint8  // length
	Outputs uint16
	Objects uint32
}

type entryOutput struct {
	Dropped bool
	Items   uint32
	Listing stages.Digest
}

// An index is the index in memory.
type index struct {
	rows    []row                    // entries, oldest first
	newest  map[stages.Digest]int32  // the row of a key
	latest  map[uint64]stages.Digest // the key of a cell, by the hash of its name
	objects int                      // that entries name
	logs    [buckets]coverage
}

type row struct {
	frame []byte // the key, then the payload
	prev  int32  // the row of an older entry of the same key, or -1
}

func (r row) hit() Hit { return Hit{stages.Digest(r.frame), r.frame[keyLen:]} }

// coverage is the part of an action log that the index knows: everything up to mark, and sum bytes of frames
// after it. The index knows the whole log if these add up to the log's size.
type coverage struct{ mark, sum int64 }

// A Hit is an action as the index knows it. It stays valid as long as the store.
type Hit struct {
	key stages.Digest
	rec []byte
}

func (h Hit) span() (off int64, n int) {
	return int64(binary.LittleEndian.Uint64(h.rec[1:])), int(binary.LittleEndian.Uint32(h.rec[9:]))
}
func (h Hit) name() uint64    { return binary.LittleEndian.Uint64(h.rec[13:]) }
func (h Hit) madeBy() []byte  { return h.rec[entryLen:][:h.rec[21]] }
func (h Hit) outputs() []byte { return h.rec[entryLen+int(h.rec[21]):][:h.Outputs()*outputLen] }

// MadeBy returns the class of device that executed the action.
func (h Hit) MadeBy() string { return string(h.madeBy()) }

// Outputs returns the number of output ports.
func (h Hit) Outputs() int { return int(binary.LittleEndian.Uint16(h.rec[22:])) }

// Output describes the output port at a position: the digest of its listing, the number of items, and whether
// their payloads' bytes were dropped on purpose.
func (h Hit) Output(i int) (listing stages.Digest, items int, dropped bool) {
	b := h.outputs()[i*outputLen:]
	return stages.Digest(b[5:outputLen]), int(binary.LittleEndian.Uint32(b[1:])), b[0] != 0
}

// Objects yields the objects that have the action's listings and payloads.
func (h Hit) Objects() iter.Seq[ObjectRef] {
	return func(yield func(ObjectRef) bool) {
		b := h.rec[entryLen+int(h.rec[21])+h.Outputs()*outputLen:]
		for ; len(b) >= objectLen; b = b[objectLen:] {
			if !yield(ObjectRef{stages.Digest(b[:keyLen]), int64(binary.LittleEndian.Uint64(b[keyLen:]))}) {
				return
			}
		}
	}
}

func appendEntry(b []byte, a *Action, off int64, n int) []byte {
	le := binary.LittleEndian
	b, _ = binary.Append(b, le, entryHead{entryKind, uint64(off), uint32(n), nameHash(a.Experiment, a.Cell),
		uint8(len(a.MadeBy)), uint16(len(a.Outputs)), uint32(len(a.Objects))})
	b = append(b, a.MadeBy...)
	for _, o := range a.Outputs {
		b, _ = binary.Append(b, le, entryOutput{o.Dropped, uint32(o.Items), o.Listing})
	}
	b, _ = binary.Append(b, le, a.Objects)
	return b
}

// validEntry reports whether rec has the length that its counts require.
func validEntry(rec []byte) bool {
	if len(rec) < entryLen || rec[0] != entryKind {
		return false
	}
	le := binary.LittleEndian
	outputs, objects := int64(le.Uint16(rec[22:])), int64(le.Uint32(rec[24:]))
	length := entryLen + int64(rec[21]) + outputs*int64(outputLen) + objects*int64(objectLen)
	return int64(len(rec)) == length && le.Uint64(rec[1:]) < 1<<62
}

// parse reads the index file b, which it keeps.
func (x *index) parse(b []byte) logScan {
	n := len(b) / (frameLen + 140) // about how many entries it has
	*x = index{
		rows: make([]row, 0, n), newest: make(map[stages.Digest]int32, n),
		latest: make(map[uint64]stages.Digest, n),
	}
	return scanLog(b, indexFrame, func(off int64, key stages.Digest, rec []byte) {
		switch {
		case validEntry(rec):
			x.add(b[int(off)+frameLen-keyLen:][:keyLen+len(rec)])
		case len(rec) == 9 && rec[0] == markKind:
			if v := binary.LittleEndian.Uint64(rec[1:]); v < 1<<62 {
				x.logs[key[0]] = coverage{mark: int64(v)}
			}
		case len(rec) == 9 && rec[0] == seenKind:
			x.latest[binary.LittleEndian.Uint64(rec[1:])] = key
		}
	})
}

// add adds an entry as the newest one of its key.
func (x *index) add(frame []byte) {
	r := row{frame, -1}
	h := r.hit()
	off, n := h.span()
	if c := &x.logs[h.key[0]]; off >= c.mark {
		c.sum += int64(n)
	}
	if prev, ok := x.newest[h.key]; ok {
		r.prev = prev
	}
	x.newest[h.key] = int32(len(x.rows))
	x.rows = append(x.rows, r)
	x.latest[h.name()] = h.key
	x.objects += int(binary.LittleEndian.Uint32(h.rec[24:]))
}

// record adds the entry of an action whose frame is at off, and returns the frame for the index file.
func (x *index) record(a *Action, off int64, n int) []byte {
	rec := appendEntry(nil, a, off, n)
	x.add(append(a.Key[:], rec...))
	return appendFrame(nil, indexFrame, a.Key, rec)
}

// find returns the newest entry of a key that a test accepts.
func (x *index) find(key stages.Digest, accept func(h Hit) bool) (h Hit, ok bool) {
	for i, ok := x.newest[key]; ok && i >= 0; i = x.rows[i].prev {
		if h = x.rows[i].hit(); accept(h) {
			return h, true
		}
	}
	return Hit{}, false
}

// Lookup finds the newest action recorded under key, among those made by prefer if there are any. It reads
// memory only, so the action's files may be missing: see [Store.Check].
func (s *Store) Lookup(key stages.Digest, prefer string) (h Hit, ok bool) {
	s.indexMu.RLock()
	defer s.indexMu.RUnlock()
	h, ok = s.index.find(key, func(h Hit) bool { return string(h.madeBy()) == prefer })
	if !ok {
		return s.index.find(key, func(Hit) bool { return true })
	}
	return h, ok
}

// nameHash is the FNV-1a hash of a cell's full name. Two names of equal hash only make `why` compare with the
// wrong cell.
func nameHash(experiment, cell string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, experiment+"\x00"+cell)
	return h.Sum64()
}

// Seen records that a cell was found under key, so that [Store.Latest] returns that action rather than the
// last one executed. It writes nothing if that is recorded already.
func (s *Store) Seen(experiment, cell string, key stages.Digest) error {
	name := nameHash(experiment, cell)
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if last, ok := s.index.latest[name]; ok && last == key || s.opts.ReadOnly {
		return nil
	}
	s.index.latest[name] = key
	rec := binary.LittleEndian.AppendUint64([]byte{seenKind}, name)
	return s.appendIndex(appendFrame(nil, indexFrame, key, rec))
}

// Latest returns the action of a cell when it was last executed or seen.
func (s *Store) Latest(experiment, cell string) (Action, bool) {
	s.indexMu.RLock()
	key := s.index.latest[nameHash(experiment, cell)]
	s.indexMu.RUnlock()
	h, ok := s.Lookup(key, "")
	if !ok {
		return Action{}, false
	}
	a, err := s.Action(h)
	return a, err == nil
}

func (s *Store) indexPath() string { return s.log(indexFrame, stages.Digest{}).path }

// openIndex reads the index file.
func (s *Store) openIndex() {
	b, err := s.readFile(s.indexPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.warn("the index of store %q can't be read, and is made again: %v", s.dir, err)
	}
	if n := s.index.parse(b).altered; n > 0 {
		s.warn("the index of store %q is damaged (%d bytes), and is mended from the actions", s.dir, n)
	}
}

// mendIndex reads the ends of the action logs, which the index lacks.
func (s *Store) mendIndex() error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	frames, err := s.catchUp()
	if err != nil || len(frames) == 0 || s.opts.ReadOnly {
		return err
	}
	if err = s.appendIndex(frames); err == nil {
		err = s.flushIndex()
	}
	if errors.As(err, new(stop)) {
		return err
	} else if err != nil {
		s.warn("%v", err) // nothing is lost: the next one catches up again
	}
	return nil
}

// catchUp adds to the index the actions of the logs that it lacks, and returns their frames for the index
// file.
func (s *Store) catchUp() (frames []byte, err error) {
	type foundAction struct {
		Action
		off int64
		n   int
	}
	var found []foundAction
	var marks []byte
	logs, err := s.logs(actionFrame)
	for _, log := range logs {
		size, err := s.size(log.path)
		c := &s.index.logs[log.bucket]
		if err != nil || size == c.mark+c.sum {
			continue
		}
		// A log that is shorter than its known part was rewritten: read all of it.
		from := c.mark
		if from > size {
			from = 0
		}
		scan, err := s.readLog(log, from, func(off int64, key stages.Digest, payload []byte) {
			a, err := decodeAction(key, payload)
			_, known := s.index.find(key, func(h Hit) bool { at, _ := h.span(); return at == off })
			if err == nil && key[0] == log.bucket && !known {
				found = append(found, foundAction{a, off, frameLen + len(payload)})
			}
		})
		if err != nil {
			s.warn("%v", err)
		} else if scan.end > c.mark || from < c.mark {
			marks = appendMark(marks, log.bucket, scan.end)
			*c = coverage{mark: scan.end}
		}
	}
	// In the order in which they happened, so that Latest is right.
	slices.SortStableFunc(found, func(a, b foundAction) int { return cmp.Compare(a.At, b.At) })
	for _, f := range found {
		frames = append(frames, s.index.record(&f.Action, f.off, f.n)...)
	}
	return append(frames, marks...), err
}

// appendMark appends the frame that records that the log of a bucket is known up to end.
func appendMark(b []byte, bucket byte, end int64) []byte {
	rec := binary.LittleEndian.AppendUint64([]byte{markKind}, uint64(end))
	return appendFrame(b, indexFrame, stages.Digest{bucket}, rec)
}

// indexBatch is how many bytes of the index are written at once. Entries that a kill loses are read from the
// action logs the next time.
const indexBatch = 64 << 10

// appendIndex adds frames to the index file, in batches. The caller holds indexMu.
func (s *Store) appendIndex(frames []byte) (err error) {
	if s.opts.ReadOnly {
		return nil // a share's actions end with it
	}
	if s.indexed == nil {
		// Opened now, so that if the index is made anew meanwhile nothing is added to that one which it may
		// have left out.
		if s.indexed, err = s.openAppend(s.indexPath()); err != nil {
			return err
		}
	}
	if s.pending = append(s.pending, frames...); len(s.pending) < indexBatch {
		return nil
	}
	return s.flushIndex()
}

func (s *Store) flushIndex() error {
	if len(s.pending) == 0 {
		return nil
	}
	err := s.write(s.indexed, s.pending)
	s.pending = s.pending[:0]
	return err
}

// closeIndex writes what's pending, and closes the index file.
func (s *Store) closeIndex() error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if s.indexed == nil {
		return nil
	}
	err := errors.Join(s.flushIndex(), s.indexed.Close())
	s.indexed = nil
	return err
}

// rebuildIndex makes the index again from the action logs, in memory and on disk.
func (s *Store) rebuildIndex() error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if s.indexed != nil {
		s.indexed.Close()
		s.indexed, s.pending = nil, nil
	}
	s.index.parse(nil)
	frames, err := s.catchUp()
	if err != nil {
		return err
	}
	return s.writeFile(s.indexPath(), 0o666, frames)
}
