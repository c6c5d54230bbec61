package stages

import (
	"fmt"
	"os"
	"time"
)

// A Stamp is what a file looks like from outside.
type Stamp struct {
	Size         int64
	MTime, CTime int64 // in Unix nanoseconds
	Inode        uint64
}

// young is how long after a change a file's stamp doesn't tell it from later versions. Within the resolution
// of file times — 2 s on some file systems — two versions of a file may look the same.
const young = 2 * time.Second

// StampOf returns the stamp of a regular file, following links. A file whose stamp is settled has the same
// bytes as long as it has the same stamp; one that was just written isn't settled, and none is on systems
// without inodes.
func StampOf(path string) (s Stamp, settled bool, err error) {
	before := time.Now().Add(-young).UnixNano()
	info, err := os.Stat(path)
	if err != nil {
		return s, false, err
	}
	if !info.Mode().IsRegular() {
		return s, false, fmt.Errorf("%q isn't a regular file", path)
	}
	ctime, inode, ok := changeTime(info)
	s = Stamp{info.Size(), info.ModTime().UnixNano(), ctime, inode}
	return s, ok && s.MTime <= before && s.CTime <= before, nil
}
