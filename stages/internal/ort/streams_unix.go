//go:build unix

package ort

import (
	"io"
	"os"
	"sync"
	"sync/atomic"

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

// speaking is held for reading while this program writes to stderr, for writing while libraries are muted.
var speaking sync.RWMutex

// talkative is a worker, whose stderr tells why it ends.
var talkative atomic.Bool

// mute has what libraries print on stderr go nowhere until done is called: drivers of GPUs warn when they
// start of what a user can't change. What ends the process is told nevertheless.
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
	if err != nil { // it is closed
		return func() {}
	}
	speaking.Lock()
	tellFaultsTo(was)
	_ = unix.Dup2(int(nowhere.Fd()), stderr) // both are open
	return func() {
		_ = unix.Dup2(was, stderr)
		tellFaultsTo(stderr)
		_ = unix.Close(was)
		speaking.Unlock()
	}
}

// Unmuted returns a writer to stderr that waits while libraries are muted there.
func Unmuted(stderr io.Writer) io.Writer { return unmuted{stderr} }

type unmuted struct{ to io.Writer }

func (u unmuted) Write(b []byte) (int, error) {
	speaking.RLock()
	defer speaking.RUnlock()
	return u.to.Write(b)
}
