package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAll writes the file system that holds dir to its disk.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
