//go:build unix

package ort

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownStdout returns a file that writes where out does, and has out lead to stderr from now on: replies aren't
// mixed with what a library prints. out itself is returned if that fails.
func ownStdout(out *os.File) *os.File {
	fd, err := unix.FcntlInt(out.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil || unix.Dup2(int(os.Stderr.Fd()), int(out.Fd())) != nil {
		return out
	}
	return os.NewFile(uintptr(fd), out.Name())
}
