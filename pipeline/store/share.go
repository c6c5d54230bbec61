package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/runexp/runexp/stages"
)

// Jobs on a cluster share a file system on which appending from two machines at once tears records. So each
// job has a store of its own, a share, which is one file, shares/<k>of<n>.<random>, over the store of all,
// which it reads only. [Store.MergeShares] adds shares to that.
//
// One file, since each file costs milliseconds on a file server: a share as a store with logs and objects in
// folders makes 18 times the calls, and takes 10 times as long to merge.

// A ShareName says which share of an experiment's items a job computes, and, for people, of what.
type ShareName struct {
	Share, Shares int    // Share from 0
	Experiment    string // may be empty
	Job           string // its id at the scheduler; may be empty
}

// A ShareStart is what the file of a share begins with.
type ShareStart struct {
	Format     int    `json:"format"`
	Experiment string `json:"experiment,omitempty"`
	Share      int    `json:"share"`
	Shares     int    `json:"shares"`
	Host       string `json:"host,omitempty"`
	Job        string `json:"job,omitempty"`
	Started    int64  `json:"started"` // by the host's clock, in Unix seconds
}

// A ShareEnd is what the file of a share that ended ends with.
type ShareEnd struct {
	Outcome string `json:"outcome"`
	Ended   int64  `json:"ended"` // by the host's clock, in Unix seconds
}

// Outcomes of a share. The outcome of a failed share is the first line of its error.
const (
	ShareOK      = "ok"
	ShareDrained = "drained"
)

// shareSync is the longest time between a write and its sync to the disk.
const shareSync = 15 * time.Second

// A share is the layer of a share's store. It writes item records, memos and objects to its file. Actions,
// and the digests of outside files, are about its items only: they are dropped when the store is closed.
type share struct {
	base    folder
	own     *shareFile
	extract *shareFile   // of what all shares read; nil for none
	earlier []*shareFile // attempts at the same share, in no order

	writing sync.Mutex // held while the file is written; guards what follows
	timer   *time.Timer
	failed  error // of a sync
	outcome string
	closed  bool

	actionMu sync.RWMutex
	actions  map[stages.Digest][]byte // records, the newest of a key
}

// OpenShare opens the store of a share over the store in dir. The share reads that store as its index file
// describes it, and trusts it without looking at the disk, since otherwise all shares would look at all files
// of the data set and at all objects. It writes a new file, which this store and the next attempt at the same
// share read. end sets the outcome that is written when the store is closed: ShareOK, ShareDrained or the
// first line of an error. Without a call of end the file has no outcome, as after a kill.
func OpenShare(dir string, name ShareName, o Options) (s *Store, end func(outcome string), err error) {
	o.ReadOnly = true
	if s, err = openAsIndexed(dir, o); err != nil {
		return nil, nil, err
	}
	l := &share{base: folder{s}, actions: map[stages.Digest][]byte{}}
	s.layer, s.trusts, s.kept = l, true, &keptFiles{open: map[string]*keptFile{}}
	if err = l.openOthers(name); err == nil {
		host, _ := os.Hostname() // for people
		err = l.create(ShareStart{shareFormat, name.Experiment, name.Share, name.Shares, host, name.Job,
			time.Now().Unix()})
	}
	if err != nil {
		l.closeFiles()
		return nil, nil, err
	}
	return s, l.end, nil
}

func (s *Store) sharesDir() string { return filepath.Join(s.dir, "shares") }

// openOthers opens the files that the share reads.
func (l *share) openOthers(name ShareName) (err error) {
	s := l.base.s
	if l.extract, err = s.openExtract(name.Experiment); err != nil {
		return err
	}
	files, err := s.shareFiles()
	for _, f := range files {
		if f.share != name.Share || f.shares != name.Shares {
			continue
		}
		if file, err := f.read(); err != nil {
			s.warn("share %s can't be read: %v", f.name, err)
		} else {
			l.earlier = append(l.earlier, file)
		}
	}
	return err
}

// files returns the files in which the share finds items and objects in addition to the store: the extract
// first, its own last.
func (l *share) files() (all []*shareFile) {
	if l.extract != nil {
		all = append(all, l.extract)
	}
	return append(append(all, l.earlier...), l.own)
}

// create makes the share's file, and writes its first frame.
func (l *share) create(start ShareStart) error {
	s, dir := l.base.s, l.base.s.sharesDir()
	if err := s.at("mkdir"); err != nil {
		return err
	}
	if err := s.makeFolder(dir); err != nil {
		return err
	}
	if err := s.at("open"); err != nil {
		return err
	}
	name := fmt.Sprintf(sharePattern, start.Share, start.Shares, rand.Uint64())
	f, err := s.openFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return s.writeErr(err)
	}
	l.own = newShareFile(foundShare{name: name}, f)
	return errors.Join(l.note(start), l.sync(), s.syncFolder(dir), s.syncFolder(s.dir))
}

// note appends a note.
func (l *share) note(n any) error {
	payload, err := json.Marshal(n)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.write(noteFrame, stages.Digest{}, payload)
}

// append keeps an action in memory, and writes any other record to the file.
func (l *share) append(kind frameKind, key stages.Digest, payload []byte) (off int64, n int, err error) {
	if kind == actionFrame {
		l.actionMu.Lock()
		defer l.actionMu.Unlock()
		l.actions[key] = payload
		return 0, frameLen + len(payload), nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	off = l.own.end
	return off, frameLen + len(payload), l.write(kind, key, payload)
}

// setMemo writes a memo if its value is new and its key belongs to this share: all shares have the same
// memos, and one of them writes each.
func (l *share) setMemo(key stages.Digest, val []byte) error {
	old, known := l.base.s.memos.get(key)
	start := l.own.start
	if known && slices.Equal(old, val) ||
		binary.LittleEndian.Uint32(key[:])%uint32(max(start.Shares, 1)) != uint32(start.Share) {
		return nil
	}
	_, _, err := l.append(memoFrame, key, val)
	return err
}

func (l *share) action(h Hit) (Action, error) {
	l.actionMu.RLock()
	payload := l.actions[h.key]
	l.actionMu.RUnlock()
	if a, ok := h.decode(h.key, payload); ok {
		return a, nil
	}
	if l.extract != nil {
		if a, ok := h.decode(h.key, l.extract.action(h.key)); ok {
			return a, nil
		}
	}
	return l.base.action(h)
}

// put writes an object unless it is known to be in this share's file, in the extract or in the store. An
// object of an earlier attempt is written again: it may be removed with its file, when a merge has combined
// it with others.
func (l *share) put(o ObjectRef, pieces [][]byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	passing := slices.ContainsFunc(l.earlier, func(f *shareFile) bool { return f.has(o) })
	if m, known := l.base.s.known(o); l.own.has(o) || known && m == nil && !passing {
		return nil
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(o.Size))
	return l.write(objectFrame, o.Digest, size, pieces...)
}

// open checks an object of the extract: if the copy is damaged, it reads the original.
func (l *share) open(o ObjectRef) (objectBytes, error) {
	for _, f := range slices.Backward(l.files()) {
		if b, err := f.open(o); err == nil && (f != l.extract || f.sound(o)) {
			return b, nil
		}
	}
	return l.base.open(o)
}

// readItems reads the log of the store once, unless the extract has the group's records.
func (l *share) readItems(g *knownGroup) (err error) {
	if g.taken == nil {
		g.taken = map[*shareFile]int{}
		if l.extract == nil || !l.extract.records(g.group) {
			err = l.base.readItems(g)
		}
	}
	for _, f := range l.files() {
		n, e := f.eachItemFrame(g.group, g.taken[f], func(_ int64, payload []byte) error {
			g.items.take(payload, g.madeBy)
			return nil
		})
		g.taken[f], err = n, errors.Join(err, e)
	}
	return err
}

// write writes a frame, and the pieces of an object after it. If a full disk takes only a part of them, the
// next write overwrites that part. The caller holds l.writing.
func (l *share) write(kind frameKind, key stages.Digest, payload []byte, pieces ...[]byte) error {
	if l.failed != nil {
		return l.failed
	}
	s, own := l.base.s, l.own
	frame := appendFrame(nil, kind, key, payload)
	end := own.end
	for _, b := range gather(append([][]byte{frame}, pieces...)) {
		if err := s.write(own.file, b); err != nil {
			if !errors.As(err, new(stop)) {
				own.file.Truncate(own.end)
				own.file.Seek(own.end, io.SeekStart)
			}
			return err
		}
		end += int64(len(b))
	}
	own.add(kind, key, payload, span{own.end, len(frame)})
	own.end = end
	if l.timer == nil {
		l.timer = time.AfterFunc(shareSync, func() { l.sync() }) // an error is kept for the next write
	}
	return nil
}

// gather joins pieces into one if they are small together.
func gather(pieces [][]byte) [][]byte {
	size := 0
	for _, b := range pieces {
		size += len(b)
	}
	if size > 1<<20 {
		return pieces
	}
	return [][]byte{slices.Concat(pieces...)}
}

// sync writes the file's bytes through to the disk.
func (l *share) sync() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if l.failed == nil {
		l.failed = l.base.s.syncFile(l.own.file)
	}
	return l.failed
}

// end sets the outcome of the share.
func (l *share) end(outcome string) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.outcome = outcome
}

func (l *share) close() (err error) {
	if l.closed {
		return nil
	}
	l.closed = true
	if l.outcome != "" {
		err = l.note(ShareEnd{l.outcome, time.Now().Unix()})
	}
	err = errors.Join(err, l.sync())
	l.closeFiles()
	return err
}

func (l *share) closeFiles() {
	for _, f := range l.base.s.kept.open {
		f.Close()
	}
	for _, f := range l.files() {
		if f != nil {
			f.close()
		}
	}
}
