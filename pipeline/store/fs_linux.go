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

func ctime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
