package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline/store"
)

// A shareState is the state of a share in its last run, as its log says.
type shareState struct {
	Share string `json:"share"` // k/M
	Node  string `json:"node,omitempty"`
	Job   string `json:"job,omitempty"` // Slurm's
	State string `json:"state"`         // running, finished, stopped by a signal, failed or lost
	Error string `json:"error,omitempty"`
	Cell  string `json:"cell,omitempty"` // the first that failed

	devices string // the requested devices, "" for the default
}

const (
	shareRuns    = "running"
	shareEnded   = "finished"
	shareStopped = "stopped"
	shareFailed  = "failed"
	shareLost    = "lost"
)

// String says why a share failed or was lost.
func (s shareState) String() string {
	text := fmt.Sprintf("share %s on %s: %s", s.Share, s.Node, s.State)
	if s.Error != "" {
		text += fmt.Sprintf(": %s: %s", s.Cell, s.Error)
	}
	return text
}

// shareStates reads the newest logs of the shares of an experiment, of the same M as the newest one. A share
// without an end is called running.
func shareStates(dir, experiment string) (states []shareState) {
	files, _ := filepath.Glob(filepath.Join(dir, "*of*.jsonl")) // an invalid pattern finds nothing
	slices.Sort(files)                                          // names begin with the time
	slices.Reverse(files)
	seen, count := map[string]bool{}, ""
	for _, file := range files {
		_, share, _ := cutLast(strings.TrimSuffix(filepath.Base(file), ".jsonl"), "-")
		_, of, ok := strings.Cut(share, "of")
		if !ok || seen[share] || count != "" && of != count {
			continue
		}
		if s, ok := readShareLog(file, experiment); ok {
			seen[share], count = true, of
			states = append(states, s)
		}
	}
	return states
}

// cutLast cuts s around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// readShareLog reads a log, whose last line may be incomplete.
func readShareLog(file, experiment string) (s shareState, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return s, false
	}
	defer f.Close()
	s.State = shareRuns
	lines := bufio.NewReader(f)
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return s, !first
		}
		var e struct {
			Event, Experiment, Share, Host, Node, Job, Cell, Error string
			Args                                                   []string
		}
		if json.Unmarshal(line, &e) != nil {
			return s, !first
		}
		if first && (e.Experiment != experiment || e.Share == "") {
			return s, false
		}
		switch e.Event {
		case "run":
			s.Share, s.Node, s.Job = e.Share, e.Host, e.Job
			if e.Node != "" {
				s.Node = e.Node
			}
			if i := slices.Index(e.Args, "--devices"); i >= 0 && i+1 < len(e.Args) {
				s.devices = e.Args[i+1]
			}
		case "failed":
			if s.Error == "" {
				s.Error, _, _ = strings.Cut(e.Error, "\n")
				s.Cell = e.Cell
			}
		case "draining":
			s.State = shareStopped
		case "finished":
			switch {
			case s.Error != "":
				s.State = shareFailed
			case s.State == shareRuns:
				s.State = shareEnded
			}
		}
	}
}

// silence is how long a running share may record nothing before it counts as lost: no item takes that long.
const silence = 15 * time.Minute

// withLost marks shares as lost that run according to their log but have recorded nothing for long. files
// are the files of shares, the newest first.
func withLost(states []shareState, files []store.ShareInfo) []shareState {
	for i := range states {
		one := &states[i]
		n := slices.IndexFunc(files, func(f store.ShareInfo) bool {
			return fmt.Sprintf("%d/%d", f.Share, f.Shares) == one.Share
		})
		if n >= 0 && one.State == shareRuns && files[n].Age > silence {
			one.State = shareLost
		}
	}
	return states
}

// rateOf returns how many items a share has computed in a second, on average.
func rateOf(shares []store.ShareInfo, now time.Time) float64 {
	items, seconds := 0, int64(0)
	for _, s := range shares {
		end := now.Add(-s.Age).Unix()
		if s.End != nil {
			end = s.End.Ended
		}
		items += s.Items
		seconds += max(end-s.Start.Started, 1)
	}
	return float64(items) / float64(max(seconds, 1))
}
