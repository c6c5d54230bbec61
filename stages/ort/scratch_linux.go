package ort

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newScratch returns an empty file in memory, and a path by which this process can open it. The library
// takes some inputs only by path; a file in memory needs no temporary folder and vanishes with the process.
func newScratch() (f *os.File, path string, remove func(), err error) {
	fd, err := unix.MemfdCreate("runexp", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", nil, os.NewSyscallError("memfd_create", err)
	}
	path = fmt.Sprintf("/proc/self/fd/%d", fd)
	f = os.NewFile(uintptr(fd), path)
	return f, path, func() { f.Close() }, nil
}
