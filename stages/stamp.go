package stages

import (
	"fmt"
	"os"
	"time"
)

// A Stamp is the size, the times and the inode of a file.
type Stamp struct {
	Size         int64
	MTime, CTime int64 // in Unix nanoseconds
	Inode        uint64
}

// young is how long after a change a file's stamp may be the same as a later version's: within the
// resolution of file times — 2 s on some file systems — two versions of a file may look the same.
const young = 2 * time.Second

// StampOf returns the stamp of a regular file, following links. A file whose stamp is settled keeps its
// bytes as long as it keeps its stamp. The stamp of a file that was just written isn't settled, and no
// stamp is on systems without inodes.
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
