//go:build unix

package ort

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ignoreSignals leaves a terminal's signals to the process that started this one, and makes this one the
// first that the kernel kills when memory is short.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // only Linux has it
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// signalOf returns the name of the signal that ended a process, or "".
func signalOf(s *os.ProcessState) string {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return ""
}

// limits returns what ulimit leaves for a process with these sizes of its address space and its data.
func limits(addresses, data int64) (rooms []Room) {
	for _, l := range []struct {
		of    int
		taken int64
		what  string
	}{
		{unix.RLIMIT_AS, addresses, "ulimit -v leaves of its"},
		{unix.RLIMIT_DATA, data, "ulimit -d leaves of its"},
	} {
		var limit unix.Rlimit
		if unix.Getrlimit(l.of, &limit) != nil || limit.Cur > math.MaxInt64>>1 {
			continue
		}
		size := int64(limit.Cur)
		rooms = append(rooms, Room{max(0, size-l.taken), size, fmt.Sprintf("%s %.3g GB", l.what, gb(size))})
	}
	return rooms
}
