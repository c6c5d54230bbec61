package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An itemFile is what's known of one file of items/: where the frames of its groups
// lie. Many cells may share a recipe, and so a group: each reads only what is new
// since the last.
type itemFile struct {
	mu     sync.Mutex // guards what follows
	file   fs.FileInfo
	end    int64 // behind the last frame that is known
	groups map[stages.Digest]*itemGroup
}

type itemGroup struct {
	frames []itemFrame
	views  map[string]*itemView // by the class of device that's preferred
}

// An itemFrame is the place of a frame.
type itemFrame struct {
	off int64
	len int
}

type itemView struct {
	items *Items
	taken int // frames
}

const (
	// itemMemory is how many bytes about item records stay in memory for later.
	itemMemory = 8 << 20

	// frameMemory is about what a frame's place takes of them.
	frameMemory = 64
)

// Items returns what's known of a group's items: the newest outcome of each, of
// those made by prefer if there are any. Damaged records are left out. What is
// recorded later may or may not show.
func (s *Store) Items(group stages.Digest, prefer string) (*Items, error) {
	path := s.itemPath(group[0])
	l := s.itemFileOf(group[0])
	l.mu.Lock()
	defer l.mu.Unlock()
	held, err := l.update(path)
	if err != nil {
		s.warn("item records can't be read: %v", err)
	}
	g := l.groups[group]
	if g == nil {
		s.holdItems(held)
		return s.newItems(), nil
	}
	v := g.views[prefer]
	if v == nil {
		v = &itemView{items: s.newItems()}
		g.views[prefer] = v
	}
	before := v.items.rows.held()
	if err := v.take(path, group, g.frames, prefer); err != nil {
		return nil, err
	}
	s.holdItems(held + int64(v.items.rows.held()-before))
	return v.items, nil
}

// holdItems accounts for memory, and gives up all of it when it's too much.
func (s *Store) holdItems(n int64) {
	s.itemMu.Lock()
	defer s.itemMu.Unlock()
	if s.itemBytes += n; s.itemBytes > itemMemory {
		s.itemFiles, s.itemBytes = nil, 0 // whoever has some keeps them
	}
}

func (s *Store) itemFileOf(bucket byte) *itemFile {
	s.itemMu.Lock()
	defer s.itemMu.Unlock()
	l := s.itemFiles[bucket]
	if l == nil {
		if s.itemFiles == nil {
			s.itemFiles = map[byte]*itemFile{}
		}
		l = &itemFile{}
		s.itemFiles[bucket] = l
	}
	return l
}

// update takes in where the frames lie that the file has beyond those known, and
// returns how many bytes that takes. A file that was rewritten meanwhile is another
// file.
func (l *itemFile) update(path string) (held int64, err error) {
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		l.file, l.end, l.groups = nil, 0, nil
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	if l.file == nil || !os.SameFile(l.file, now) || now.Size() < l.end {
		l.file, l.end, l.groups = now, 0, map[stages.Digest]*itemGroup{}
	}
	if !now.Mode().IsRegular() || now.Size() == l.end {
		return 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	from := l.end
	end, err := streamLog(io.NewSectionReader(f, from, now.Size()-from), itemLog, func(off int64, key stages.Digest, payload []byte) error {
		g := l.groups[key]
		if g == nil {
			g = &itemGroup{views: map[string]*itemView{}}
			l.groups[key] = g
		}
		g.frames = append(g.frames, itemFrame{from + off, frameLen + len(payload)})
		held += frameMemory
		return nil
	})
	l.end = from + end
	return held, err
}

// take reads the frames of a group that the view lacks.
func (v *itemView) take(path string, group stages.Digest, frames []itemFrame, prefer string) error {
	if v.taken == len(frames) {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	var b []byte
	for ; v.taken < len(frames); v.taken++ {
		frame := frames[v.taken]
		b = append(b[:0], make([]byte, frame.len)...)
		if _, err := f.ReadAt(b, frame.off); err == io.EOF {
			continue // rewritten since
		} else if err != nil {
			return err
		}
		// Checked once more: it may be another file by now.
		if key, payload, _, ok := frameAt(b, itemLog); ok && key == group {
			if err := v.items.add(payload, prefer); err != nil {
				return err
			}
		}
	}
	return nil
}
