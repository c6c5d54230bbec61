package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An itemFile is what's known of one file of items/: where the frames of its groups
// lie. Many cells may share a recipe, and so a group: each reads only what is new
// since the last.
type itemFile struct {
	mu     sync.Mutex // guards what follows
	file   *os.File   // open only while frames are read: a run has few files open, however many there are
	info   fs.FileInfo
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

// Items returns what's known of a group's items: the newest outcome of each, of those made by prefer if there are
// any. Records that are damaged or can't be read are left out. What is recorded later may or may not show.
func (s *Store) Items(group stages.Digest, prefer string) *Items {
	items, held := s.itemFileOf(group[0]).items(s, group, prefer)
	s.holdItems(held)
	return items
}

// items is Items, and returns how many more bytes the file holds now.
func (l *itemFile) items(s *Store, group stages.Digest, prefer string) (items *Items, held int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.close()
	path := s.itemPath(group[0])
	held, err := l.update(s, path)
	if err != nil {
		s.warn("item records can't be read: %v", err)
	}
	g := l.groups[group]
	if g == nil {
		return &Items{}, held
	}
	v := g.views[prefer]
	if v == nil {
		v = &itemView{items: &Items{}}
		g.views[prefer] = v
	}
	before := v.items.bytes()
	if v.taken < len(g.frames) && l.file == nil {
		err = l.open(s, path)
	}
	if err == nil {
		err = v.take(l.file, group, g.frames, prefer)
	}
	if err != nil {
		s.warn("item records can't be read: %v", err)
	}
	return v.items, held + v.items.bytes() - before
}

// holdItems accounts for memory, and gives up all of it when it's too much.
func (s *Store) holdItems(n int64) {
	s.itemMu.Lock()
	s.itemBytes += n
	much := s.itemBytes > itemMemory
	s.itemMu.Unlock()
	if much {
		s.closeItems() // whoever has items keeps them
	}
}

func (s *Store) closeItems() {
	s.itemMu.Lock()
	files := s.itemFiles
	s.itemFiles, s.itemBytes = nil, 0
	s.itemMu.Unlock()
	for _, l := range files {
		l.mu.Lock()
		l.forget()
		l.mu.Unlock()
	}
}

// forget makes the file one of which nothing is known.
func (l *itemFile) forget() {
	l.close()
	l.info, l.end, l.groups = nil, 0, nil
}

func (l *itemFile) close() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
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
func (l *itemFile) update(s *Store, path string) (held int64, err error) {
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		l.forget()
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	if l.info == nil || !os.SameFile(l.info, now) || now.Size() < l.end {
		l.forget()
	} else if now.Size() == l.end {
		return 0, nil
	}
	if err := l.open(s, path); err != nil {
		return 0, err
	}
	if now, err = l.file.Stat(); err != nil {
		return 0, err
	}
	from := l.end
	end, err := streamLog(io.NewSectionReader(l.file, from, now.Size()-from), itemLog, func(off int64, key stages.Digest, payload []byte) error {
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

// open opens the file. One that isn't that which is known is another one, of which
// nothing is known.
func (l *itemFile) open(s *Store, path string) error {
	f, err := s.read(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	if l.info == nil || !os.SameFile(l.info, info) {
		l.forget()
		l.info, l.groups = info, map[stages.Digest]*itemGroup{}
	}
	l.file = f
	return nil
}

// take reads the frames of a group that the view lacks.
func (v *itemView) take(file *os.File, group stages.Digest, frames []itemFrame, prefer string) error {
	var b []byte
	for ; v.taken < len(frames); v.taken++ {
		frame := frames[v.taken]
		b = slices.Grow(b[:0], frame.len)[:frame.len]
		if _, err := file.ReadAt(b, frame.off); err == io.EOF {
			continue // shorter than it was
		} else if err != nil {
			return err
		}
		// Checked once more: the bytes may have been altered since.
		if key, payload, _, ok := frameAt(b, itemLog); ok && key == group {
			v.items.take(payload, prefer)
		}
	}
	return nil
}
