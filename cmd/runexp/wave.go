package main

import (
	"cmp"
	"context"
	"errors"
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
	p, err := load(file, f.narrow)
	if err != nil {
		return err
	}
	if err := f.waitForShares(ctx, u, p.Name); err != nil {
		return err
	}
	s, err := f.engine.openFor(ctx, u, p, false)
	if err != nil {
		return err
	}
	s.engine.Closing = true
	result, dir, err := f.execute(ctx, u, s, &runLog{place: s.place, plan: p})
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

// A file server's clients see new files late: a closing waits for shares that haven't ended, or can't be
// seen.
var (
	lateFor   = 30 * time.Second
	lateEvery = 2 * time.Second
)

// waitForShares waits until all shares of an experiment have ended, but not for long: some may be lost.
func (f *runFlags) waitForShares(ctx context.Context, u *ui, experiment string) error {
	p, err := here()
	if err != nil {
		return err
	}
	dir, err := f.engine.folder(p)
	if err != nil {
		return err
	}
	st, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		return environment(err)
	}
	defer st.Close()
	for began, said := time.Now(), false; ; {
		shares, err := sharesOf(st, experiment)
		if err != nil {
			return environment(err)
		}
		late := lateShares(shares)
		if late == 0 || time.Since(began) > lateFor {
			return nil
		}
		if !said {
			said = true
			u.say("waiting for %d of %d shares", late, shares[0].Shares)
		}
		select {
		case <-draining(ctx):
			return drainedShare(ctx)
		case <-time.After(lateEvery):
		}
	}
}

// lateShares returns how many shares haven't ended, of the number in the first one's name.
func lateShares(shares []store.ShareInfo) int {
	if len(shares) == 0 {
		return 0
	}
	ended, of := map[int]bool{}, shares[0].Shares
	for _, s := range shares {
		if s.End != nil && s.Shares == of {
			ended[s.Share] = true
		}
	}
	return of - len(ended)
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
