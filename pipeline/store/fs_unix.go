//go:build linux || darwin

package store

import (
	"os"
	"syscall"
)

// noFollow makes opening a link an error.
const noFollow = syscall.O_NOFOLLOW

// statSize returns a regular file's size. It's called once a pack of a no-op run, and so does without the
// allocations of os.Lstat.
func statSize(path string) (int64, error) {
	var st syscall.Stat_t
	for {
		if err := syscall.Lstat(path, &st); err == nil {
			if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
				return 0, &os.PathError{Op: "stat", Path: path, Err: errForeign}
			}
			return st.Size, nil
		} else if err != syscall.EINTR {
			return 0, &os.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// logLimit returns how many logs a store may have open: a quarter of the files that the process may have,
// since every worker has some of its own.
func logLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 16
	}
	return int(min(max(limit.Cur/4, 4), 2*buckets))
}
