//go:build linux || darwin

package stages

import (
	"os"
	"syscall"
)

// changeTime returns when a file's inode last changed, in Unix nanoseconds, and its number.
func changeTime(info os.FileInfo) (nanoseconds int64, inode uint64, ok bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return ctime(st), st.Ino, true
	}
	return 0, 0, false
}
