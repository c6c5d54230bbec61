package store

import (
	"os"
	"runtime"
	"syscall"
)

// syncfs is the number of the system call, which package syscall lacks.
var syncfs = map[string]uintptr{"amd64": 306, "arm64": 267}[runtime.GOARCH]

// syncAll writes the file system that holds dir to its disk.
func syncAll(dir string) error {
	if syncfs == 0 {
		syscall.Sync()
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, _, errno := syscall.Syscall(syncfs, f.Fd(), 0, 0); errno != 0 {
		return os.NewSyscallError("syncfs", errno)
	}
	return nil
}

// changeTime returns when a file's inode last changed, in Unix nanoseconds, and its number.
func changeTime(info os.FileInfo) (ctime int64, inode uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Ctim.Nano(), st.Ino, true
}
