//go:build linux || darwin

package store

import "syscall"

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
