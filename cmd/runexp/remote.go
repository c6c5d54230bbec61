package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/fetch"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

// withRemotes plans addresses in an experiment as the local files to which they are fetched, and functions
// in Python as the stages that they are, if the user allows it.
func withRemotes(ctx context.Context, experiment string, o plan.Overrides) plan.Overrides {
	o.Allows = permission(experiment)
	o.Function = func(uses, file string) (*stages.Stage, error) {
		return registry.Function(ctx, uses, file)
	}
	open := sync.OnceValues(fetch.Open)
	o.Remote = func(address string) (string, error) {
		a, err := fetch.Parse(address)
		if err != nil {
			return "", err
		}
		c, err := open()
		if err != nil {
			return "", err
		}
		return c.File(a), nil
	}
	return o
}

// openFiles opens the user's cache of fetched files and, unless quiet, shows downloads on stderr until done
// is called.
func (u *ui) openFiles(quiet bool) (c *fetch.Cache, done func(), err error) {
	if c, err = fetch.Open(); err != nil {
		return nil, nil, environment(err)
	}
	if quiet {
		return c, func() {}, nil
	}
	display := progress.Downloads(u.err, u.width, time.Now)
	c.Show = func(p fetch.Progress) { display.Show(p.Name, p.Done, p.Total) }
	c.Again = display.Say
	return c, display.Close, nil
}

// fetch downloads the files that a plan reads from addresses. All failures are reported together, before
// anything is computed.
func (u *ui) fetch(ctx context.Context, p *plan.Plan, quiet bool) error {
	remotes := p.Remotes()
	if len(remotes) == 0 {
		return nil
	}
	c, done, err := u.openFiles(quiet)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := untilSignal(ctx)
	defer stop()
	var failed plan.Diags
	for _, r := range remotes {
		a, err := fetch.Parse(r.Address)
		if err == nil {
			_, err = c.Fetch(ctx, a)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed = append(failed, unfetched(c, p, r.Places[0], err))
		}
	}
	done()
	return u.unfetched(failed)
}

// unfetched returns the diagnostic for an address that couldn't be fetched.
func unfetched(c *fetch.Cache, p *plan.Plan, at plan.Diag, err error) plan.Diag {
	at.Msg = err.Error()
	if e := (*fetch.Error)(nil); errors.As(err, &e) {
		if at.Hint = e.Hint; e.Absent {
			const text = "where there is a network, \"runexp fetch %s\" fills %s; %s"
			at.Hint = strings.TrimSuffix(fmt.Sprintf(text, quote(p.File), c.Dir, e.Hint), "; ")
		}
	}
	return at
}

// unfetched reports the addresses that couldn't be fetched, and returns the error for them.
func (u *ui) unfetched(failed plan.Diags) error {
	if len(failed) == 0 {
		return nil
	}
	failed.Sort()
	u.diags(failed)
	return &exitError{code: exitEnvironment}
}

// unpinned returns a warning for each address without a digest: tomorrow, or on another machine, its file
// may differ.
func unpinned(p *plan.Plan) (list plan.Diags) {
	for _, r := range p.Remotes() {
		if a, err := fetch.Parse(r.Address); err != nil || a.Pinned() {
			continue
		}
		for _, d := range r.Places {
			d.Msg = fmt.Sprintf("%s has no digest: the file may change", r.Address)
			d.Hint = fmt.Sprintf("\"runexp pin %s\" writes it", quote(p.File))
			list = append(list, d)
		}
	}
	list.Sort()
	return list
}

// unseen returns a warning for each address that isn't fetched yet, so that its file wasn't checked.
func unseen(p *plan.Plan) (list plan.Diags) {
	for _, r := range p.Remotes() {
		if !r.Fetched() {
			d := r.Places[0]
			d.Msg = r.Address + " isn't fetched yet, and nothing that depends on its content is checked"
			d.Hint = fmt.Sprintf("\"runexp fetch %s\" fetches it", quote(p.File))
			list = append(list, d)
		}
	}
	list.Sort()
	return list
}

func isAddress(text string) bool { return strings.Contains(text, "://") }

// local returns the file that an argument names; an address is fetched first. The second result is the
// argument for an experiment: the address, with pin also its digest, or the unchanged path.
func (u *ui) local(ctx context.Context, text string, pin bool) (file, as string, err error) {
	if !isAddress(text) {
		return text, text, nil
	}
	a, err := fetch.Parse(text)
	if err != nil {
		return "", "", usage(err, "")
	}
	c, done, err := u.openFiles(false)
	if err != nil {
		return "", "", err
	}
	defer done()
	if pin {
		a, err = c.Pin(ctx, a)
	}
	if err == nil {
		file, err = c.Fetch(ctx, a)
	}
	if e := (*fetch.Error)(nil); errors.As(err, &e) {
		err = &exitError{exitEnvironment, e, e.Hint}
	}
	return file, a.String(), err
}
