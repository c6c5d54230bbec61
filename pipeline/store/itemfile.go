package store

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An itemFile is what was read of one file of items/. Many cells may share a
// recipe, and so a group: each reads only what is new since the last.
type itemFile struct {
	mu     sync.Mutex // guards what follows
	file   fs.FileInfo
	end    int64 // behind the last frame that was read
	groups map[stages.Digest]*itemGroup
}

type itemGroup struct {
	frames [][]byte
	views  map[string]*itemView // by the class of device that's preferred
}

type itemView struct {
	items Items
	taken int // frames
}

// itemMemory is how many bytes of item records are kept in memory for later.
const itemMemory = 8 << 20

// Items returns what's known of a group's items: the newest outcome of each, of
// those made by prefer if there are any. Damaged records are left out. What is
// recorded later may or may not show.
func (s *Store) Items(group stages.Digest, prefer string) (*Items, error) {
	l := s.itemFileOf(group[0])
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.read(s.itemPath(group[0]))
	if err != nil {
		s.warn("item records can't be read: %v", err)
	}
	s.itemMu.Lock()
	if s.itemBytes += n; s.itemBytes > itemMemory {
		s.itemFiles, s.itemBytes = nil, 0 // whoever has some keeps them
	}
	s.itemMu.Unlock()
	g := l.groups[group]
	if g == nil {
		return &Items{}, nil
	}
	v := g.views[prefer]
	if v == nil {
		v = &itemView{items: Items{where: map[stages.Digest]itemPlace{}}}
		g.views[prefer] = v
	}
	for _, frame := range g.frames[v.taken:] {
		v.items.add(frame, prefer)
	}
	v.taken = len(g.frames)
	return &v.items, nil
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

// read takes in what the file has beyond what is known of it, and returns how many
// bytes that are. A file that was rewritten meanwhile is another file.
func (l *itemFile) read(path string) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		l.file, l.end, l.groups = nil, 0, nil
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if l.file == nil || !os.SameFile(l.file, now) || now.Size() < l.end {
		l.file, l.end, l.groups = now, 0, map[stages.Digest]*itemGroup{}
	}
	if !now.Mode().IsRegular() || now.Size() == l.end {
		return 0, nil
	}
	b := make([]byte, now.Size()-l.end)
	n, err := f.ReadAt(b, l.end)
	if err == io.EOF {
		err = nil
	}
	scan := scanLog(b[:n], itemLog, func(_ int, key stages.Digest, payload []byte) {
		if len(payload) > math.MaxInt32 {
			return
		}
		g := l.groups[key]
		if g == nil {
			g = &itemGroup{views: map[string]*itemView{}}
			l.groups[key] = g
		}
		g.frames = append(g.frames, payload)
	})
	l.end += int64(scan.end)
	return int64(scan.end), err
}
