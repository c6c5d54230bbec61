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

// Jobs on a cluster share a file system on which appending from two machines at once tears records. So a job
// writes a new file only, its part: parts/<share>of<shares>.<random>. [Store.Fold] adds parts to the store.

// A PartName says which share of an experiment's items a job computes, and, for people, of what.
type PartName struct {
	Share, Shares int    // Share from 0
	Experiment    string // may be empty
	Job           string // its id at the scheduler; may be empty
}

// A PartNote is what a part begins with.
type PartNote struct {
	Format     int    `json:"format"`
	Experiment string `json:"experiment,omitempty"`
	Share      int    `json:"share"`
	Shares     int    `json:"shares"`
	Host       string `json:"host,omitempty"`
	Job        string `json:"job,omitempty"`
	Started    int64  `json:"started"` // by the host's clock, in Unix seconds
}

// A PartEnd is what the part of a share that ended ends with.
type PartEnd struct {
	Outcome string `json:"outcome"` // see [Store.EndPart]
	Ended   int64  `json:"ended"`   // by the host's clock, in Unix seconds
}

// Outcomes of a share. That of one that failed is the first line of its error.
const (
	PartOK      = "ok"
	PartDrained = "drained"
)

// partSync is how much later than a write the disk has it at the latest.
const partSync = 15 * time.Second

// A part is where a store that was opened for a share writes.
type part struct {
	*journal
	s       *Store
	earlier []*journal // of attempts at the same share
	brief   *brief     // nil for none

	itemLogs [buckets]bool // those that the store has
	kept     keptFiles

	writing sync.Mutex // held while the journal is written; guards what follows
	timer   *time.Timer
	failed  error // of a sync
	outcome string
	closed  bool

	actionMu sync.RWMutex
	actions  map[stages.Digest][]byte // records, the newest of a key
}

// OpenPart opens the store in dir for a share of an experiment's items: as its index file has it, not
// catching up with its logs, and for reading only. What is put or recorded goes to a new part. It is found
// again by this store, and by the next attempt at the same share; actions and digests of files, which are
// about the share's items only, are forgotten when the store is closed.
func OpenPart(dir string, name PartName, o Options) (*Store, error) {
	o.ReadOnly = true
	s, err := openAsIndexed(dir, o)
	if err != nil {
		return nil, err
	}
	p := &part{s: s, actions: map[stages.Digest][]byte{}, kept: keptFiles{open: map[string]*keptFile{}}}
	s.part = p
	logs, err := s.logs(itemFrame)
	for _, log := range logs {
		p.itemLogs[log.bucket] = true
	}
	err = errors.Join(err, p.findEarlier(name))
	if err == nil {
		p.brief, err = s.openBrief(name.Experiment)
	}
	if err == nil {
		host, _ := os.Hostname() // for people
		err = p.create(PartNote{journalFormat, name.Experiment, name.Share, name.Shares, host, name.Job,
			time.Now().Unix()})
	}
	if err != nil {
		p.closeFiles()
		return nil, err
	}
	return s, nil
}

func (s *Store) partsDir() string { return filepath.Join(s.dir, "parts") }

// findEarlier reads what earlier attempts at the share left.
func (p *part) findEarlier(name PartName) error {
	files, err := p.s.partFiles()
	for _, f := range files {
		if f.share != name.Share || f.shares != name.Shares {
			continue
		}
		j, _, err := f.read()
		if err != nil {
			p.s.warn("part %s can't be read: %v", f.name, err)
			continue
		}
		p.earlier = append(p.earlier, j)
	}
	return err
}

// create makes the part's file, and writes its first frame.
func (p *part) create(note PartNote) error {
	s, dir := p.s, p.s.partsDir()
	if err := s.at("mkdir"); err != nil {
		return err
	}
	if err := s.makeFolder(dir); err != nil {
		return err
	}
	if err := s.at("open"); err != nil {
		return err
	}
	name := fmt.Sprintf(partPattern, note.Share, note.Shares, rand.Uint64())
	f, err := s.openFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return s.writeErr(err)
	}
	p.journal = newJournal(name, f)
	err = p.note(note)
	return errors.Join(err, p.sync(), s.syncFolder(dir), s.syncFolder(s.dir))
}

// note appends a note.
func (p *part) note(n any) error {
	payload, err := json.Marshal(n)
	if err != nil {
		return err
	}
	var none stages.Digest
	return p.record(noteFrame, none, payload, appendFrame(nil, noteFrame, none, payload))
}

// record keeps a record: an action in memory, another one in the journal.
func (p *part) record(kind frameKind, key stages.Digest, payload, frame []byte) error {
	if kind == actionFrame {
		p.actionMu.Lock()
		defer p.actionMu.Unlock()
		p.actions[key] = payload
		return nil
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.append(kind, key, payload, frame)
}

// memo keeps a memo for the store if it falls to this share: all shares learn about the same things, and one
// tells of each.
func (p *part) memo(key stages.Digest, val []byte) error {
	if binary.LittleEndian.Uint32(key[:])%uint32(max(p.head.Shares, 1)) != uint32(p.head.Share) {
		return nil
	}
	return p.record(memoFrame, key, val, appendFrame(nil, memoFrame, key, val))
}

// action returns the action behind a hit if this share recorded it, or a brief has it.
func (p *part) action(h Hit) (a Action, ok bool) {
	if p == nil {
		return a, false
	}
	p.actionMu.RLock()
	payload := p.actions[h.key]
	p.actionMu.RUnlock()
	if payload == nil {
		payload = p.brief.get(h.key)
	}
	found, err := decodeAction(h.key, payload)
	if err == nil && h.describes(&found) {
		return found, true
	}
	return a, false
}

// listing returns the encoded listing in an object if the brief has it.
func (p *part) listing(object ObjectRef) []byte {
	if p == nil {
		return nil
	}
	if b := p.brief.get(object.Digest); stages.Sum(b) == object.Digest {
		return b
	}
	return nil
}

// put appends an object, unless it's known to be there: in this part, or in the store. That of an earlier
// attempt may go with its part, when a fold has joined it to others.
func (p *part) put(object ObjectRef, parts [][]byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	earlier := func(j *journal) bool { return j.has(object) }
	if m, known := p.s.known(object); p.has(object) ||
		known && m == nil && !slices.ContainsFunc(p.earlier, earlier) {
		return nil
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(object.Size))
	frame := appendFrame(nil, objectFrame, object.Digest, size)
	if err := p.append(objectFrame, object.Digest, size, append([][]byte{frame}, parts...)...); err != nil {
		return err
	}
	p.s.remember(object, nil)
	return nil
}

// append writes a frame and what belongs to it. What a full disk takes of that is written over by the next
// one. The caller holds p.writing.
func (p *part) append(kind frameKind, key stages.Digest, payload []byte, pieces ...[]byte) error {
	if p.failed != nil {
		return p.failed
	}
	end := p.end
	for _, b := range pieces {
		if len(b) == 0 {
			continue
		}
		if err := p.s.write(p.file, b); err != nil {
			if !errors.As(err, new(stop)) {
				p.file.Truncate(p.end)
				p.file.Seek(p.end, io.SeekStart)
			}
			return err
		}
		end += int64(len(b))
	}
	p.add(kind, key, payload, span{p.end, len(pieces[0])})
	p.end = end
	if p.timer == nil {
		p.timer = time.AfterFunc(partSync, func() { p.sync() }) // an error is kept for the next append
	}
	return nil
}

// sync hands to the disk what was written.
func (p *part) sync() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.failed == nil {
		p.failed = p.s.syncFile(p.file)
	}
	return p.failed
}

// journals returns where the share's items are, oldest first.
func (p *part) journals() []*journal { return append(slices.Clip(p.earlier), p.journal) }

// openObject opens an object that lies in a part.
func (p *part) openObject(object ObjectRef) (objectBytes, error) {
	return openObjectIn(p.journals(), object)
}

// openObjectIn opens an object that lies in one of some parts, the newest first.
func openObjectIn(journals []*journal, object ObjectRef) (b objectBytes, err error) {
	for _, j := range slices.Backward(journals) {
		if b, err = j.openObject(object); err == nil {
			break
		}
	}
	return b, err
}

// EndPart says how the share ended, PartOK, PartDrained or the first line of an error, for the note that
// Close writes. Without it the part says nothing of its end, as after a kill. In a store that wasn't opened
// for a share it does nothing.
func (s *Store) EndPart(outcome string) {
	if s.part != nil {
		s.part.writing.Lock()
		s.part.outcome = outcome
		s.part.writing.Unlock()
	}
}

// close ends the part.
func (p *part) close() (err error) {
	if p == nil || p.closed {
		return nil
	}
	p.closed = true
	if p.outcome != "" {
		err = p.note(PartEnd{p.outcome, time.Now().Unix()})
	}
	err = errors.Join(err, p.sync())
	p.closeFiles()
	return err
}

func (p *part) closeFiles() {
	for _, f := range p.kept.open {
		f.Close()
	}
	for _, j := range p.earlier {
		j.close()
	}
	if p.brief != nil {
		p.brief.file.Close()
	}
	if p.journal != nil {
		p.journal.close()
	}
}
