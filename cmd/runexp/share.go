package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
)

// closeShares is the value of --share of the command that closes a wave.
const closeShares = "close"

// shareIndexes are the variables with a job's index in its array: Slurm's, and those of an Indexed Job of
// Kubernetes.
var shareIndexes = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

// shareOf parses a share, k/M; without k it is the job's index in its array.
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

// runShare runs a share, or closes a wave of shares.
func (f *runFlags) runShare(ctx context.Context, u *ui, file string) (err error) {
	if f.share == closeShares {
		return f.closeWave(ctx, u, file)
	}
	share, err := shareOf(f.share)
	if err != nil {
		return err
	}
	if f.accept || f.html || f.out != "" || len(f.force) > 0 {
		return misuse("a share publishes nothing and takes what is stored: " +
			"--accept, --html, --out and --force are for a run, or for --share close")
	}
	p, err := load(ctx, file, f.narrow)
	if err != nil {
		return err
	}
	var end func(outcome string)
	f.engine.running = runningHere()
	f.engine.openStore = func(dir string, o store.Options) (s *store.Store, err error) {
		name := store.ShareName{
			Share: share.K, Shares: share.Of, Experiment: p.Name, Job: os.Getenv("SLURM_JOB_ID"),
		}
		s, end, err = store.OpenShare(dir, name, o)
		return s, err
	}
	s, err := f.engine.open(u, false)
	if err != nil {
		return err
	}
	log := &runLog{place: s.place, plan: p, share: share}
	defer func() { end(outcome(err, log.failed)) }()
	s.engine.Share = share
	result, _, err := f.execute(ctx, u, s, log)
	if result != nil {
		defer result.Close()
	}
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		return drainedShare(ctx)
	case err != nil:
		return err
	}
	return endShare(u, share, result)
}

// endShare reports the end of a share.
func endShare(u *ui, share *resolve.Share, r *pipeline.Result) error {
	sum := r.Summary
	if sum.Failed > 0 {
		u.failed(r, "")
		return &exitError{code: exitFailed}
	}
	text := fmt.Sprintf("share %s: done, %d items executed", share, sum.Items)
	if sum.Postponed > 0 {
		text += fmt.Sprintf("; %s left for after all shares", progress.Cells(sum.Postponed))
	}
	u.say("%s", text)
	return nil
}

// addShares adds the results of ended shares to the store, for all experiments. The extract for the next
// shares of an experiment is removed, since it lacks these results and those to be computed.
func (s *session) addShares(ctx context.Context, u *ui, experiment string) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	slow := time.AfterFunc(progressAfter, func() { u.say("adding what shares left…") })
	r, err := s.store.MergeShares(ctx)
	slow.Stop()
	if n := len(r.Refused); n > 0 {
		u.warn(fmt.Sprintf("shares: refused %d records, such as %s", n, r.Refused[0]))
	}
	if r.Items > 0 {
		u.say("added %d records of items and %s from %d shares", r.Items, size(r.Bytes), r.Shares)
	}
	if err == nil && experiment != "" {
		err = s.store.RemoveExtract(experiment)
	}
	if errors.Is(err, store.ErrUnwritable) { // the store still serves its results
		u.warn(fmt.Sprintf("what shares left can't be added: %v", err))
		return nil
	}
	return err
}

// progressAfter is how long shares are added silently.
const progressAfter = 3 * time.Second

// outcome describes for the store how a share ended: err is the result of its run, and failed the first
// failed cell, with its error.
func outcome(err error, failed string) string {
	switch {
	case err == nil:
		return store.ShareOK
	case exitCode(err) == exitAgain:
		return store.ShareDrained
	case failed == "":
		failed = err.Error()
	}
	line, _, _ := strings.Cut(failed, "\n")
	return line
}

// runningHere is the folder on this machine's own disk in which a share records the models in use: file
// locks don't work across a shared file system.
func runningHere() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("runexp-%d", os.Getuid()), "running")
}

// whereRan adds to the record of a log where a share ran, on which no review folder depends.
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
