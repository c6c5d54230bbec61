package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/store"
)

// closeWave executes the cells that need the items of all shares, and publishes if nothing is left after
// that.
func (f *runFlags) closeWave(ctx context.Context, u *ui, file string) error {
	if len(f.force) > 0 {
		return misuse("--share close executes no items: --force is for a run")
	}
	p, err := load(ctx, file, f.narrow)
	if err != nil {
		return err
	}
	s, err := f.engine.openFor(ctx, u, p, false)
	if err != nil {
		return err
	}
	s.engine.Closing = true
	result, dir, err := f.execute(ctx, u, s, &runLog{place: s.place, plan: p})
	if err == nil && lacksItems(result) {
		var waited bool
		if waited, err = s.waitForShares(ctx, u, p.Name); err == nil && waited {
			result.Close()
			if err := s.addShares(ctx, u, p.Name); err != nil {
				return err
			}
			result, dir, err = f.execute(ctx, u, s, &runLog{place: s.place, plan: p})
		}
	}
	if result != nil {
		defer result.Close()
	}
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		return drainedShare(ctx)
	case err != nil:
		return err
	case result.Summary.Postponed == 0:
		return f.publish(ctx, u, s, result, dir)
	}
	return cmp.Or(endWave(u, s.place, result), s.extract(ctx, u, p))
}

// shownLacks is how many cells with missing items are named.
const shownLacks = 10

// endWave reports the missing items of a wave, or the cells that it makes executable.
func endWave(u *ui, p place, r *pipeline.Result) error {
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
	if r.Summary.Failed > 0 {
		u.failed(r, "")
	}
	if missing > 0 || r.Summary.Failed > 0 {
		for _, s := range shareStates(p.runs(), r.Plan.Name) {
			if s.State == shareFailed {
				u.say("%s", s)
				break
			}
		}
		u.hint("the same shares again, or a run without --share, execute what is missing")
		return &exitError{code: exitFailed}
	}
	u.say("this wave is complete; %s can be executed now, by shares or by a run", progress.Cells(next))
	return nil
}

// extract leaves an extract of the store for the next wave's shares.
func (s *session) extract(ctx context.Context, u *ui, p *plan.Plan) error {
	o, err := s.outlook(ctx, u, p)
	if err != nil {
		return err
	}
	return o.Extract()
}

// lacksItems reports whether items are missing that shares could have executed.
func lacksItems(r *pipeline.Result) bool {
	return slices.ContainsFunc(r.Lacks(), func(l pipeline.Lack) bool { return !l.New })
}

// A file server's clients see new files late: a closing that lacks items waits for shares that haven't ended,
// or aren't visible.
var (
	lateFor   = 30 * time.Second
	lateEvery = 2 * time.Second
)

// waitForShares waits until all shares of an experiment have ended, but not for long: some may be lost. It
// reports whether it waited. A merge comes before it, which removes the shares of earlier waves, so that they
// don't count as ended, and ended shares without items, for which it then waits in vain.
func (s *session) waitForShares(ctx context.Context, u *ui, experiment string) (waited bool, err error) {
	for began := time.Now(); ; waited = true {
		shares, err := sharesOf(s.store, experiment)
		if err != nil {
			return waited, environment(err)
		}
		late := lateShares(shares)
		if late == "" || time.Since(began) > lateFor {
			return waited, nil
		}
		if !waited {
			u.say("waiting for %s", late)
		}
		select {
		case <-draining(ctx):
			return waited, pipeline.ErrDrained
		case <-time.After(lateEvery):
		}
	}
}

// lateShares describes the shares that haven't ended, of the number in the first one's name. It returns "" if
// all have.
func lateShares(shares []store.ShareInfo) string {
	if len(shares) == 0 {
		return "shares: none is visible"
	}
	ended, of := map[int]bool{}, shares[0].Shares
	for _, s := range shares {
		if s.End != nil && s.Shares == of {
			ended[s.Share] = true
		}
	}
	if len(ended) == of {
		return ""
	}
	return fmt.Sprintf("up to %d of %d shares", of-len(ended), of)
}

// sharesOf returns the shares of an experiment in a store, the newest first.
func sharesOf(s *store.Store, experiment string) ([]store.ShareInfo, error) {
	shares, err := s.Shares()
	shares = slices.DeleteFunc(shares, func(s store.ShareInfo) bool {
		return s.Start == nil || s.Start.Experiment != experiment
	})
	slices.SortStableFunc(shares, func(a, b store.ShareInfo) int {
		return cmp.Compare(b.Start.Started, a.Start.Started)
	})
	return shares, err
}
