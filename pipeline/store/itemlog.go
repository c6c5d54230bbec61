package store

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An itemLog is what's known of one log of items/: where the frames of its groups lie. Many cells may share a
// recipe, and so a group: each reads only what is new since the last.
type itemLog struct {
	mu     sync.Mutex  // guards what follows
	info   fs.FileInfo // of the file
	end    int64       // behind the last frame that is known
	frames map[stages.Digest][]framePlace
	views  map[itemView]*takenItems
}

// A framePlace is the place of a frame.
type framePlace struct {
	off int64
	len int
}

// An itemView names what [Store.Items] returns.
type itemView struct {
	group  stages.Digest
	prefer string
}

type takenItems struct {
	Items
	frames int // that were taken
}

const (
	// itemMemory is how many bytes about item records stay in memory for later.
	itemMemory = 8 << 20

	// frameMemory is about what a frame's place takes of them.
	frameMemory = 64
)

// Items returns what's known of a group's items: the newest outcome of each, of those made by prefer if there
// are any. Records that are damaged or can't be read are left out. What is recorded later may or may not
// show.
func (s *Store) Items(group stages.Digest, prefer string) *Items {
	s.itemMu.Lock()
	l := s.itemLogs[group[0]]
	if l == nil {
		l = &itemLog{}
		s.itemLogs[group[0]] = l
	}
	s.itemMu.Unlock()

	items, held, err := l.items(s, itemView{group, prefer})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.warn("item records can't be read: %v", err)
	}

	s.itemMu.Lock()
	s.itemBytes += held
	much := s.itemBytes > itemMemory
	s.itemMu.Unlock()
	if much {
		s.forgetItems() // the callers that have items keep them
	}
	return items
}

// forgetItems gives up what's known of item records.
func (s *Store) forgetItems() {
	s.itemMu.Lock()
	defer s.itemMu.Unlock()
	clear(s.itemLogs)
	s.itemBytes = 0
}

// items returns the items of a view, and how many more bytes l holds now.
func (l *itemLog) items(s *Store, view itemView) (items *Items, held int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	items = s.NewItems()
	f, err := s.read(s.itemPath(view.group[0]))
	if err != nil {
		return items, 0, err
	}
	defer f.Close()
	if held, err = l.update(f); err != nil || len(l.frames[view.group]) == 0 {
		return items, held, err
	}
	v := l.views[view]
	if v == nil {
		v = &takenItems{Items: Items{rows: column{spill: &s.spill}}}
		l.views[view] = v
	}
	before := v.bytes()
	err = v.takeFrames(f, view, l.frames[view.group])
	return &v.Items, held + v.bytes() - before, err
}

// update notes where the frames lie that the file has beyond those known, and returns how many bytes that
// takes. A file that was rewritten meanwhile is another file, of which nothing is known.
func (l *itemLog) update(f *os.File) (held int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if l.info == nil || !os.SameFile(l.info, info) || info.Size() < l.end {
		l.info, l.end = info, 0
		l.frames, l.views = map[stages.Digest][]framePlace{}, map[itemView]*takenItems{}
	}
	scan, err := readOpenLog(f, l.end, itemFrame, func(off int64, group stages.Digest, payload []byte) {
		l.frames[group] = append(l.frames[group], framePlace{off, frameLen + len(payload)})
		held += frameMemory
	})
	l.end = max(l.end, scan.end)
	return held, err
}

// takeFrames reads the frames of a group that v lacks.
func (v *takenItems) takeFrames(f *os.File, view itemView, frames []framePlace) error {
	var b []byte
	for ; v.frames < len(frames); v.frames++ {
		frame := frames[v.frames]
		b = slices.Grow(b[:0], frame.len)[:frame.len]
		if _, err := f.ReadAt(b, frame.off); err != nil {
			return err
		}
		// Checked once more: the bytes may have been altered since.
		if key, payload, _, ok := frameAt(b, itemFrame); ok && key == view.group {
			v.take(payload, view.prefer)
		}
	}
	return nil
}
