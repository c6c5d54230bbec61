package store

import (
	"os"
	"syscall"
)

// syncAll writes all file systems to their disks.
func syncAll(string) error {
	syscall.Sync()
	return nil
}

// changeTime returns when a file's inode last changed, in Unix nanoseconds, and its number.
func changeTime(info os.FileInfo) (ctime int64, inode uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Ctimespec.Nano(), st.Ino, true
}
