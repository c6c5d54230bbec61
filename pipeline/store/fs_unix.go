//go:build linux || darwin

package store

import (
	"os"
	"syscall"
)

// noFollow makes opening a link an error.
const noFollow = syscall.O_NOFOLLOW

// logLimit returns how many logs a store may have open: a quarter of the files that the process may have,
// since every worker has some of its own.
func logLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 16
	}
	return int(min(max(limit.Cur/4, 4), 2*buckets))
}

// changeTime returns when a file's inode last changed, in Unix nanoseconds, and its number.
func changeTime(info os.FileInfo) (nanoseconds int64, inode uint64, ok bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return ctime(st), st.Ino, true
	}
	return 0, 0, false
}
