//go:build unix

package ort

import (
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ownStdout returns a file that writes to out's destination, and redirects out to stderr, so that a
// library's output isn't mixed with replies. It returns out itself if that fails.
func ownStdout(out *os.File) *os.File {
	fd, err := unix.FcntlInt(out.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil || unix.Dup2(int(os.Stderr.Fd()), int(out.Fd())) != nil {
		return out
	}
	return os.NewFile(uintptr(fd), out.Name())
}

// speaking is locked for reading while this program writes to stderr, and for writing while libraries are
// muted.
var speaking sync.RWMutex

// talkative is set in a worker, whose stderr explains why it ends.
var talkative atomic.Bool

// mute discards what libraries print on stderr until done is called: drivers of GPUs start with warnings
// about things that a user can't change. The message of a fault that ends the process is still printed.
func mute() (done func()) {
	const stderr = 2
	if talkative.Load() {
		return func() {}
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return func() {}
	}
	defer nowhere.Close()
	was, err := unix.FcntlInt(stderr, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil { // stderr is closed
		return func() {}
	}
	speaking.Lock()
	printFaultsTo(was)
	_ = unix.Dup2(int(nowhere.Fd()), stderr) // both are open
	return func() {
		_ = unix.Dup2(was, stderr)
		printFaultsTo(stderr)
		_ = unix.Close(was)
		speaking.Unlock()
	}
}

// Unmuted returns a writer to stderr that waits while libraries are muted.
func Unmuted(stderr io.Writer) io.Writer { return unmuted{stderr} }

type unmuted struct{ to io.Writer }

func (u unmuted) Write(b []byte) (int, error) {
	speaking.RLock()
	defer speaking.RUnlock()
	return u.to.Write(b)
}
