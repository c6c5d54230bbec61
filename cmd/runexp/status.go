package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

func statusVerb(f flags) *verb {
	var asJSON bool
	f["--json"] = &asJSON
	narrow, engine := f.narrow(), f.engine()
	return &verb{
		name: "status", takes: arity{1, 1, "an experiment file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			p, s, err := engine.loadAndOpen(ctx, u, args[0], narrow, true)
			if err != nil {
				return err
			}
			shares := shareStates(s.place.runs(), p.Name)
			if len(shares) > 0 { // estimates are for the devices that work
				if devices, err := device.Parse(shares[0].devices); err == nil {
					s.engine.Devices = devices
				}
			}
			o, err := s.outlook(ctx, u, p)
			if err != nil {
				return err
			}
			folder, err := engine.folder(s.place)
			if err != nil {
				return err
			}
			files, err := sharesOf(s.store, p.Name)
			if err != nil {
				u.warn(err.Error())
			}
			st, err := newStatus(ctx, withLost(shares, files), p, o, narrow, folder)
			if err != nil {
				return err
			}
			st.foresee(rateOf(files, time.Now()))
			if asJSON {
				return u.json().Encode(st)
			}
			st.write(u.out)
			return nil
		},
	}
}

// A status is the progress of an experiment, on any number of machines.
type status struct {
	Experiment string       `json:"experiment"`
	Cells      int          `json:"cells"`
	Complete   int          `json:"complete"` // cells
	Items      int          `json:"items"`    // of all cells whose number is known
	Done       int          `json:"done"`     // items
	Seconds    float64      `json:"seconds"`  // on one device, for the others
	Unknown    int          `json:"unknown"`  // number of cells whose time is unknown
	Devices    int          `json:"devices"`  // at work: running shares, or 1
	Left       float64      `json:"left"`     // seconds, on that many devices
	Speed      float64      `json:"speed"`    // items a second, on that many devices; 0 if unknown
	Waves      []waveStatus `json:"waves"`
	Jobs       *jobCount    `json:"jobs,omitempty"` // absent without squeue
	Shares     []shareState `json:"shares"`

	unsized int // cells whose items aren't known
}

type waveStatus struct {
	Wave   int `json:"wave"` // from 1
	Items  int `json:"items"`
	Done   int `json:"done"`
	Cells  int `json:"cells"`  // incomplete itemwise cells
	Closes int `json:"closes"` // cells that the closing of the wave executes

	unsized int // cells whose items aren't known
}

type jobCount struct {
	Running int `json:"running"`
	Pending int `json:"pending"`

	ids map[string]bool // of the running jobs
}

func newStatus(ctx context.Context, shares []shareState, p *plan.Plan, o *pipeline.Outlook,
	narrow *plan.Overrides, folder string) (*status, error) {
	st := &status{Experiment: p.Name, Cells: len(p.Cells), Waves: []waveStatus{}, Shares: []shareState{}}
	for _, c := range p.Cells {
		if o.State(c).Kind == pipeline.IsCached {
			st.Complete++
		}
	}
	name, err := jobName(p, narrow, folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range o.Waves() {
		st.Items, st.Done = st.Items+w.Calls, st.Done+w.Known
		st.Seconds, st.Unknown = st.Seconds+w.Missing.Seconds, st.Unknown+w.Missing.Unknown
		one := waveStatus{w.Number + 1, w.Calls, w.Known, len(w.Cells), len(w.Closing), w.Unsized}
		st.unsized += w.Unsized
		st.Waves = append(st.Waves, one)
		wave := fmt.Sprintf("%s-%d", name, one.Wave)
		names = append(names, wave, wave+closing)
	}
	if st.Complete == st.Cells {
		return st, nil
	}
	st.Shares = append(st.Shares, shares...)
	st.Jobs = countJobs(ctx, names)
	for i := range st.Shares {
		one := &st.Shares[i]
		if one.State == shareRuns && one.Job != "" && st.Jobs != nil && !st.Jobs.ids[one.Job] {
			one.State = shareLost
		}
	}
	return st, nil
}

// countJobs asks Slurm for jobs by their names. It returns nil without Slurm.
func countJobs(ctx context.Context, names []string) *jobCount {
	if _, err := exec.LookPath("squeue"); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := call(ctx, "", "squeue", "--noheader", "--array", "--name="+strings.Join(names, ","),
		"--format=%A %T")
	if err != nil {
		return nil
	}
	c := &jobCount{ids: map[string]bool{}}
	for line := range strings.Lines(out) {
		switch id, state, _ := strings.Cut(strings.TrimSpace(line), " "); state {
		case "PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT":
			c.Pending++
		case "":
		default: // running, starting or ending
			c.Running++
			c.ids[id] = true
		}
	}
	return c
}

// shownShares is how many failed or lost shares are named.
const shownShares = 5

func (st *status) write(w io.Writer) {
	if st.Complete == st.Cells {
		fmt.Fprintf(w, "%s: all of %s complete\n", st.Experiment, progress.Cells(st.Cells))
		return
	}
	fmt.Fprintf(w, "%s: %d of %s complete, %d of %s items done\n", st.Experiment, st.Complete,
		progress.Cells(st.Cells), st.Done, atLeast(st.Items, st.unsized))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range st.Waves {
		if v.Cells+v.Closes == 0 {
			fmt.Fprintf(t, "wave %d\tcomplete\n", v.Wave)
			continue
		}
		percent := ""
		if v.Items > 0 && v.unsized == 0 {
			percent = fmt.Sprintf(", %d %%", 100*v.Done/v.Items)
		}
		fmt.Fprintf(t, "wave %d\t%d of %s items%s; %d cells to complete, %d to close\n", v.Wave, v.Done,
			atLeast(v.Items, v.unsized), percent, v.Cells, v.Closes)
	}
	counts := map[string]int{}
	for _, s := range st.Shares {
		counts[s.State]++
	}
	if len(st.Shares) > 0 {
		var parts []string
		for _, state := range []string{shareRuns, shareEnded, shareStopped, shareFailed, shareLost} {
			if n := counts[state]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, state))
			}
		}
		fmt.Fprintf(t, "shares\t%s\n", strings.Join(parts, ", "))
	}
	if st.Jobs != nil {
		fmt.Fprintf(t, "jobs\t%d running, %d pending\n", st.Jobs.Running, st.Jobs.Pending)
	}
	if st.Left > 0 {
		fmt.Fprintf(t, "left\t%s\n", st.left())
	}
	t.Flush()
	shown := 0
	for _, s := range st.Shares {
		if s.State != shareFailed && s.State != shareLost {
			continue
		}
		if shown++; shown > shownShares {
			break
		}
		fmt.Fprintln(w, s)
	}
}

// atLeast writes a number of items, with a + if unsized cells have an unknown number of further items.
func atLeast(items, unsized int) string {
	if unsized > 0 {
		return fmt.Sprintf("%d+", items)
	}
	return fmt.Sprint(items)
}

// foresee estimates the time left from the items that shares have computed in a second, or else from
// earlier times.
func (st *status) foresee(rate float64) {
	for _, s := range st.Shares {
		if s.State == shareRuns {
			st.Devices++
		}
	}
	st.Devices = max(st.Devices, 1)
	items := float64(st.Items - st.Done)
	if st.Left = st.Seconds / float64(st.Devices); st.Left > 0 && st.Unknown == 0 {
		st.Speed = items / st.Left
	}
	if rate > 0 {
		st.Speed = rate * float64(st.Devices)
		st.Left = items / st.Speed
	}
}

// left writes the time left, on as many devices as work now, and their speed.
func (st *status) left() string {
	text := timeOf(pipeline.Estimate{Seconds: st.Left, Unknown: st.Unknown + st.unsized}) + " on one device"
	if st.Devices > 1 {
		text = strings.TrimSuffix(text, "one device") + fmt.Sprintf("%d devices", st.Devices)
	}
	if st.Speed > 0 {
		text += fmt.Sprintf(", %.3g items a second", st.Speed)
	}
	return text
}
