package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline/store"
)

// A shareState tells how far a share came when it last ran, as its log or its part has it.
type shareState struct {
	Share string `json:"share"` // k/M
	Node  string `json:"node,omitempty"`
	Job   string `json:"job,omitempty"` // of Slurm
	State string `json:"state"`         // running, finished, stopped by a signal, failed or lost
	Error string `json:"error,omitempty"`
	Cell  string `json:"cell,omitempty"` // that failed first

	devices string // that it was given, "" for those by default
	began   int64  // by its host's clock, in Unix seconds
	of      int    // shares
}

const (
	shareRuns    = "running"
	shareEnded   = "finished"
	shareStopped = "stopped"
	shareFailed  = "failed"
	shareLost    = "lost"
)

// String tells why a share failed or was lost.
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

// readShareLog reads a log, of which the last line may be torn.
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
			Event, Experiment, Share, Host, Node, Job, Cell, Error, Began string
			Args                                                          []string
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
			if t, err := time.Parse(time.RFC3339, e.Began); err == nil {
				s.began = t.Unix()
			}
			_, of, _ := strings.Cut(s.Share, "/")
			s.of, _ = strconv.Atoi(of) // 0 is of no shares
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

// silence is how long a share that runs may record nothing before it counts as lost: no item takes that long.
const silence = 15 * time.Minute

// withParts adds what parts of the store tell, the newest first: of shares that have no log here, began again
// since theirs, or were killed before it had an end.
func withParts(states []shareState, parts []store.PartInfo) []shareState {
	if len(parts) == 0 {
		return states
	}
	if newest := parts[0]; len(states) > 0 && states[0].of != newest.Shares {
		if states[0].began >= newest.Note.Started {
			return states
		}
		states = nil
	}
	seen := map[string]int{} // the position of a share, and one that parts have told of is below 0
	for i, s := range states {
		seen[s.Share] = i + 1
	}
	for _, p := range parts {
		one := shareState{
			Share: fmt.Sprintf("%d/%d", p.Share, p.Shares), Node: p.Note.Host, Job: p.Note.Job,
			of: p.Shares, began: p.Note.Started,
		}
		i := seen[one.Share]
		if i < 0 || p.Shares != parts[0].Shares {
			continue
		}
		seen[one.Share] = -1
		switch {
		case p.End == nil && p.Age > silence:
			one.State = shareLost
		case p.End == nil:
			one.State = shareRuns
		case p.End.Outcome == store.PartOK:
			one.State = shareEnded
		case p.End.Outcome == store.PartDrained:
			one.State = shareStopped
		default:
			one.State, one.Error = shareFailed, p.End.Outcome
		}
		if i == 0 {
			states = append(states, one)
			continue
		}
		s := &states[i-1]
		again := p.Note.Started > s.began
		more := s.State == shareRuns || s.State == shareEnded && one.State == shareFailed
		if again || more && (p.End == nil || p.End.Ended >= s.began) {
			one.Node, one.devices = cmp.Or(s.Node, one.Node), s.devices
			*s = one
		}
	}
	return states
}

// partsOf returns the parts of an experiment, the newest first.
func partsOf(s *store.Store, experiment string) ([]store.PartInfo, error) {
	parts, err := s.Parts()
	parts = slices.DeleteFunc(parts, func(p store.PartInfo) bool {
		return p.Note == nil || p.Note.Experiment != experiment
	})
	slices.SortStableFunc(parts, func(a, b store.PartInfo) int {
		return cmp.Compare(b.Note.Started, a.Note.Started)
	})
	return parts, err
}

// rateOf returns how many items a share has computed in a second, on average.
func rateOf(parts []store.PartInfo, now time.Time) float64 {
	items, seconds := 0, int64(0)
	for _, p := range parts {
		end := now.Add(-p.Age).Unix()
		if p.End != nil {
			end = p.End.Ended
		}
		items += p.Items
		seconds += max(end-p.Note.Started, 1)
	}
	return float64(items) / float64(max(seconds, 1))
}
