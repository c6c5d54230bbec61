package store

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An itemView names what [Store.Items] returns.
type itemView struct {
	group  stages.Digest
	prefer string
}

// A knownGroup is what was read of a group's item records. Many cells may share a recipe, and so a group: each
// reads only what is new since the last.
type knownGroup struct {
	mu    sync.Mutex // guards what follows
	items *Items
	log   fs.FileInfo // that was read
	end   int64       // behind the last frame of it that was read
}

// itemMemory is how many bytes about item records stay in memory for later.
const itemMemory = 8 << 20

// Items returns what's known of a group's items: the newest outcome of each, of those made by prefer if there
// are any. Records that are damaged or can't be read are left out. What is recorded later may or may not
// show.
func (s *Store) Items(group stages.Digest, prefer string) *Items {
	view := itemView{group, prefer}
	s.itemMu.Lock()
	g := s.groups[view]
	if g == nil {
		g = &knownGroup{items: s.NewItems()}
		s.groups[view] = g
	}
	s.itemMu.Unlock()

	items, grown, err := g.update(s, view)
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

// update reads the frames that the log has beyond those known, and returns by how many bytes the items grew.
// A log that was rewritten meanwhile is another file, of which nothing is known.
func (g *knownGroup) update(s *Store, view itemView) (items *Items, grown int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.items.bytes()
	f, err := s.read(s.log(itemFrame, view.group).path)
	if err != nil {
		return g.items, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return g.items, 0, err
	}
	if g.log == nil || !os.SameFile(g.log, info) || info.Size() < g.end {
		g.items, g.log, g.end = s.NewItems(), info, 0
	}
	scan, err := readOpenLog(f, g.end, itemFrame, func(_ int64, group stages.Digest, payload []byte) {
		if group == view.group {
			g.items.take(payload, view.prefer)
		}
	})
	g.end = max(g.end, scan.end)
	return g.items, g.items.bytes() - before, err
}
