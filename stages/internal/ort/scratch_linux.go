package ort

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newScratch returns an empty file that lies in memory and has no name, and a path that leads to it within
// this process. The library takes some things by path only; this way it needs no temporary folder, and a
// killed process leaves nothing there.
func newScratch() (f *os.File, path string, remove func(), err error) {
	fd, err := unix.MemfdCreate("runexp", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", nil, os.NewSyscallError("memfd_create", err)
	}
	path = fmt.Sprintf("/proc/self/fd/%d", fd)
	f = os.NewFile(uintptr(fd), path)
	return f, path, func() { f.Close() }, nil
}
