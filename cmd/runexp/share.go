package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
)

// closeShares is the value of --share of the command that closes a wave.
const closeShares = "close"

// shareIndexes are the variables that tell a job its place in an array: of Slurm, and of an Indexed Job of
// Kubernetes.
var shareIndexes = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

// shareOf reads a share, k/M; where k is left out it is the job's place in its array.
func shareOf(text string) (*resolve.Share, error) {
	index, of, ok := strings.Cut(text, "/")
	name := "--share"
	for _, env := range shareIndexes {
		if v := os.Getenv(env); ok && index == "" && v != "" {
			index, name = v, "$"+env
		}
	}
	k, errIndex := strconv.Atoi(index)
	m, errOf := strconv.Atoi(of)
	switch {
	case ok && index == "":
		const unset = "--share %s leaves k to $%s, and none is set: give k/M"
		return nil, misuse(unset, text, strings.Join(shareIndexes, " or $"))
	case errIndex != nil || errOf != nil || k < 0 || m < 1:
		return nil, misuse("--share %q is neither k/M, with k from 0, nor /M, nor %s", text, closeShares)
	case k >= m:
		return nil, misuse("%s is %d, and shares of %d are from 0 to %d", name, k, m, m-1)
	}
	return &resolve.Share{K: k, Of: m}, nil
}

// takeShare makes f's run that of a share, or the one that closes a wave.
func (f *runFlags) takeShare() (err error) {
	switch f.share {
	case "":
		return nil
	case closeShares:
		if f.closing = true; len(f.force) > 0 {
			return misuse("--share close executes no items: --force is for a run")
		}
		return nil
	}
	if f.engine.share, err = shareOf(f.share); err != nil {
		return err
	}
	if f.accept || f.html || f.out != "" || len(f.force) > 0 {
		return misuse("a share publishes nothing and takes what is stored: " +
			"--accept, --html, --out and --force are for a run, or for --share close")
	}
	return nil
}

// endShare reports what a share did.
func (f *runFlags) endShare(u *ui, r *pipeline.Result) error {
	sum := r.Summary
	if sum.Failed > 0 {
		u.say("%s failed, %d blocked", progress.Cells(sum.Failed), sum.Blocked)
		return &exitError{code: exitFailed}
	}
	text := fmt.Sprintf("share %s: done, %d items executed", f.engine.share, sum.Items)
	if sum.Postponed > 0 {
		text += fmt.Sprintf("; %s left for after all shares", progress.Cells(sum.Postponed))
	}
	u.say("%s", text)
	return nil
}

// shownLacks is how many cells are named that lack items.
const shownLacks = 10

// endClosing reports what a closed wave lacks, or opens to the next. done is true where nothing is left, and
// the run publishes.
func (f *runFlags) endClosing(u *ui, p place, r *pipeline.Result) (done bool, err error) {
	if r.Summary.Postponed == 0 {
		return true, nil
	}
	missing, cells, next := 0, 0, 0
	for _, l := range r.Lacks() {
		if l.New {
			next++
			continue
		}
		missing += l.Items
		if cells++; cells <= shownLacks {
			u.say("%s: %d items are missing", l.Cell, l.Items)
		}
	}
	if cells > shownLacks {
		u.say("and of %s more", progress.Cells(cells-shownLacks))
	}
	if n := r.Summary.Failed; n > 0 {
		u.say("%s failed, %d blocked", progress.Cells(n), r.Summary.Blocked)
	}
	if missing > 0 || r.Summary.Failed > 0 {
		for _, s := range shareStates(p.runs(), r.Plan.Name) {
			if s.State == shareFailed {
				u.say("%s", s)
				break
			}
		}
		u.hint("the same shares again, or a run without --share, execute what is missing")
		return false, &exitError{code: exitFailed}
	}
	u.say("this wave is complete; %s can be executed now, by shares or by a run", progress.Cells(next))
	return false, nil
}

// brief leaves a brief for the next wave's shares.
func (s *session) brief(ctx context.Context, u *ui, p *plan.Plan) error {
	o, err := s.outlook(ctx, u, p)
	if err != nil {
		return err
	}
	return o.Brief()
}

// outcome is how a share ended, for its part: err is what its run returned, and failed the first cell that
// did, with its error.
func outcome(err error, failed string) string {
	switch {
	case err == nil:
		return store.PartOK
	case exitCode(err) == exitAgain:
		return store.PartDrained
	case failed == "":
		failed = err.Error()
	}
	line, _, _ := strings.Cut(failed, "\n")
	return line
}

// runningHere is the folder on this machine's own disk in which a share notes the models in use: locks of
// files don't reach over a shared file system.
func runningHere() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("runexp-%d", os.Getuid()), "running")
}

// whereRan tells a log what a review folder mustn't depend on: where a share ran.
func whereRan(record map[string]any, share *resolve.Share) {
	if share == nil {
		return
	}
	record["share"] = share.String()
	for name, env := range map[string]string{
		"gpu": "CUDA_VISIBLE_DEVICES", "job": "SLURM_JOB_ID", "node": "SLURMD_NODENAME",
	} {
		if v := os.Getenv(env); v != "" {
			record[name] = v
		}
	}
}

// drainedShare is the error of a share that a signal stopped, for a script that queues it again.
func drainedShare(ctx context.Context) error {
	return &exitError{code: exitAgain, err: errors.New(stoppedBy(ctx).Error())}
}
