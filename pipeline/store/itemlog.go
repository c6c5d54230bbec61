package store

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An itemGroup is the items of a group that a class of device made.
type itemGroup struct {
	group  stages.Digest
	madeBy string
}

// A knownGroup has the records of a group that were read. Many cells may share a recipe, and so a group: each
// reads only the records that are new since the last one read.
type knownGroup struct {
	itemGroup

	mu    sync.Mutex // guards what follows
	items *Items
	log   fs.FileInfo // the file that was read
	end   int64       // of the last frame that was read

	taken map[*shareFile]int // in a share: how many frames of each file were read
}

// itemMemory is how many bytes about item records stay in memory for later.
const itemMemory = 8 << 20

// Items returns the known items of a group: the newest outcome of each that a class of device made. Records
// that are damaged or can't be read are left out. Later records may or may not appear in the result.
func (s *Store) Items(group stages.Digest, madeBy string) *Items {
	s.itemMu.Lock()
	id := itemGroup{group, madeBy}
	g := s.groups[id]
	if g == nil {
		g = &knownGroup{itemGroup: id, items: s.NewItems()}
		s.groups[id] = g
	}
	s.itemMu.Unlock()

	items, grown, err := g.update(s)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.warn("item records can't be read: %v", err)
	}
	s.itemMu.Lock()
	defer s.itemMu.Unlock()
	if s.itemBytes += grown; s.itemBytes > itemMemory {
		clear(s.groups) // the callers that have items keep them
		s.itemBytes = 0
	}
	return items
}

// update reads the frames that are new since the last time, and returns by how many bytes the items grew.
func (g *knownGroup) update(s *Store) (items *Items, grown int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.items.bytes()
	err = s.layer.readItems(g)
	return g.items, g.items.bytes() - before, err
}

// readLog reads the log's frames after the known ones. A log that was rewritten meanwhile is another file,
// none of whose frames is known.
func (g *knownGroup) readLog(s *Store) error {
	log := s.log(itemFrame, g.group)
	f, done, err := s.readKept(log.path)
	if err != nil {
		return err
	}
	defer done()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if g.log == nil || !os.SameFile(g.log, info) || info.Size() < g.end {
		g.items, g.log, g.end = s.NewItems(), info, 0
	}
	scan, err := readOpenLog(f, g.end, itemFrame, func(_ int64, group stages.Digest, payload []byte) {
		if group == g.group {
			g.items.take(payload, g.madeBy)
		}
	})
	g.end = max(g.end, scan.end)
	return err
}
