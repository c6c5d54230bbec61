//go:build linux || darwin

package store

import (
	"os"
	"syscall"
)

// statSize returns a file's size. It's called once a pack of a no-op run, and so
// does without the allocations of os.Stat.
func statSize(path string) (int64, error) {
	var st syscall.Stat_t
	for {
		if err := syscall.Stat(path, &st); err == nil {
			return st.Size, nil
		} else if err != syscall.EINTR {
			return 0, &os.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// rename replaces to by from. Unlike os.Rename it doesn't look at to first.
func rename(from, to string) error {
	for {
		if err := syscall.Rename(from, to); err == nil {
			return nil
		} else if err != syscall.EINTR {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
	}
}
