//go:build unix

package ort

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
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

// freeMemory returns how many bytes processes may take, 0 where the system doesn't say.
func freeMemory() int64 { return kilobytes("/proc/meminfo", "MemAvailable:") << 10 }

// residentMemory returns how many bytes this process takes, 0 where the system doesn't say.
func residentMemory() int64 { return kilobytes("/proc/self/status", "VmRSS:") << 10 }

// kilobytes returns a number of one of the system's tables, 0 if it isn't there.
func kilobytes(file, row string) (n int64) {
	b, _ := os.ReadFile(file)
	_, after, _ := strings.Cut(string(b), row)
	_, _ = fmt.Sscan(after, &n)
	return n
}
