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

// ignoreSignals leaves it to the process that started this one what a terminal's signals mean, and makes this
// one the first that goes when the system's memory is short.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // where there is such
}

// processorTime returns what this process took of one.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // which can't fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// signalOf names the signal that ended a process, "" if none did.
func signalOf(s *os.ProcessState) string {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return ""
}

// limits returns what ulimit leaves of the addresses and of the data of a process that has so much of both.
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
