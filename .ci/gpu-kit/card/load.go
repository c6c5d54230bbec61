package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// load watches the card by nvidia-smi.
type load struct {
	cancel context.CancelFunc

	mu      sync.Mutex
	samples []sample
}

// A sample is the share of the last moment, of up to a second, in which the card computed anything, in per
// cent, and the memory in use, in MiB.
type sample struct {
	at           time.Time
	busy, memory float64
}

// watch begins to sample the first card. Without nvidia-smi there are no samples.
func watch(ctx context.Context) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	cmd := exec.CommandContext(ctx, "nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu,memory.used",
		"--format=csv,noheader,nounits", "-lms", "200")
	group(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return l
	}
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			busy, memory, _ := strings.Cut(scan.Text(), ",")
			b, err1 := strconv.ParseFloat(strings.TrimSpace(busy), 64)
			m, err2 := strconv.ParseFloat(strings.TrimSpace(memory), 64)
			if err1 == nil && err2 == nil {
				l.mu.Lock()
				l.samples = append(l.samples, sample{time.Now(), b, m})
				l.mu.Unlock()
			}
		}
		_ = cmd.Wait() // it was stopped
	}()
	return l
}

func (l *load) stop() { l.cancel() }

// settle is how long a sample still shows what was before.
const settle = 500 * time.Millisecond

// since returns the mean share of busy time and the most memory since a time; false if nothing was sampled.
func (l *load) since(start time.Time) (busy, memory float64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.samples {
		if s.at.After(start.Add(settle)) {
			busy, memory, n = busy+s.busy, max(memory, s.memory), n+1
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	return busy / float64(n), memory, true
}

// use is the load of a figure, for a line of progress.
func (f figure) use() string {
	if !f.sampled {
		return ""
	}
	return fmt.Sprintf(", busy %.0f %%, %.0f MiB", f.busy, f.memory)
}
