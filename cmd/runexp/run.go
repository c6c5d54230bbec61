package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/pipeline/store"
)

func runVerb(f flags) *verb {
	r := runFlags{}
	f["--accept"], f["--fail-fast"], f["--force"] = &r.accept, &r.failFast, &r.force
	f["--json"], f["--quiet"], f["--out"], f["--html"] = &r.json, &r.quiet, &r.out, &r.html
	f["--share"] = &r.share
	r.narrow, r.engine = f.narrow(), f.engine()
	return &verb{
		name: "run", takes: arity{1, 1, "an experiment file"}, drains: true,
		run: r.run,
	}
}

type runFlags struct {
	narrow                        *plan.Overrides
	engine                        *engineFlags
	accept, failFast, json, quiet bool
	html                          bool
	force                         []string
	out, share                    string
	closing                       bool // a wave: --share close
}

func (f *runFlags) run(ctx context.Context, u *ui, args []string) (err error) {
	if err := f.takeShare(); err != nil {
		return err
	}
	p, s, err := f.engine.loadAndOpen(u, args[0], f.narrow, false)
	if err != nil {
		return err
	}
	log := runLog{place: s.place, plan: p, share: f.engine.share}
	if f.engine.share != nil {
		defer func() { s.store.EndPart(outcome(err, log.failed)) }()
	} else {
		if f.closing {
			s.seen = map[string]store.PartInfo{}
		}
		if _, err := s.fold(ctx, u); err != nil {
			return err
		}
		// A brief doesn't tell of what this run adds.
		if err := s.store.WriteBrief(p.Name, nil, nil); err != nil {
			return environment(err)
		}
	}
	if err := u.fetch(ctx, p, f.quiet); err != nil {
		return err
	}
	for _, d := range slices.Concat(p.Warnings, p.Missing(), p.Remarks(), unpinned(p)) {
		u.warn(d.String())
	}
	dir, err := f.folder(s.place, p)
	if err != nil {
		return err
	}
	s.engine.FailFast, s.engine.Share, s.engine.Closing = f.failFast, f.engine.share, f.closing
	if len(f.force) > 0 {
		if s.engine.Force, err = p.Selector(f.force); err != nil {
			return usage(err, "")
		}
	}
	display := u.progress()
	switch {
	case f.json:
		display = progress.JSON(u.out)
	case f.quiet:
		display = progress.Quiet(u.err)
	}
	execute := func() (*pipeline.Result, error) {
		return s.run(ctx, p, func(e pipeline.Event) {
			if e.Kind == pipeline.CellStarted || e.Kind == pipeline.CellCompiling {
				u.working()
			}
			log.show(e)
			display.Show(e)
		})
	}
	result, err := execute()
	if f.closing && err == nil {
		result, err = s.lookAgain(ctx, u, result, f.narrow, execute)
	}
	display.Close()
	log.close()
	if result != nil {
		defer result.Close()
		s.reportProbation(u, result, f.quiet)
	}
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		sum := result.Summary
		const text = "stopped with %d of %s done; the same command goes on from here"
		u.say(text, sum.Cached+sum.Executed, progress.Cells(sum.Cells))
		if f.share != "" {
			return drainedShare(ctx)
		}
		return stoppedBy(ctx)
	case err != nil:
		return err
	case f.engine.share != nil:
		return f.endShare(u, result)
	case f.closing:
		done, err := f.endClosing(u, s.place, result)
		if !done {
			return cmp.Or(err, s.brief(ctx, u, p))
		}
	}
	err = f.publish(ctx, u, s.place, result, dir)
	if f.html {
		out := io.Writer(u.out)
		if f.json {
			out = u.err
		}
		file, failed := (&reviewFlags{}).write(ctx, s.place, s.store, dir)
		if failed == nil {
			fmt.Fprintln(out, file)
		}
		err = cmp.Or(err, failed)
	}
	return err
}

// folder returns the folder into which the run publishes. It returns an error, before anything is computed,
// if the run must not write there.
func (f *runFlags) folder(p place, x *plan.Plan) (string, error) {
	narrowed, reviewed := len(x.Narrowed) > 0, p.review(x.Name)
	dir, real := reviewed, p.real
	switch {
	case f.out == "" && narrowed:
		dir = p.out(x.Name, f.narrow)
	case narrowed && sameFolder(f.out, reviewed):
		const text = "--out %s is the reviewed folder, which a narrowed or overridden run doesn't write " +
			"over: name another, or leave --out away for %s"
		return "", misuse(text, f.out, p.short(p.out(x.Name, f.narrow)))
	case f.out != "":
		dir, real = f.out, p.realNamed
	}
	if err := real(dir); err != nil {
		return "", err
	}
	err := publish.Check(dir)
	if f.out != "" && errors.As(err, new(*publish.ForeignError)) {
		own := "--out " + quote(filepath.Join(dir, x.Name))
		return "", usage(fmt.Errorf("--out %s: %w", dir, err), own+" would write a new folder there")
	}
	if err != nil {
		return "", environment(err)
	}
	return dir, nil
}

// publish updates the review folder and reports how the results compare with it.
func (f *runFlags) publish(ctx context.Context, u *ui, p place, r *pipeline.Result, dir string) error {
	out := io.Writer(u.out)
	if f.json {
		out = u.err
	}
	var other bool // forced cells have other results
	for _, c := range r.Forced {
		other = other || !c.Reproduced
		fmt.Fprintf(out, "%s: %s\n", c.Cell, c)
	}
	verdict, current, err := results.Publish(ctx, r, dir, f.command(p, r.Plan),
		publish.Options{Accept: f.accept})
	if err != nil {
		return err
	}
	for _, w := range verdict.Warnings {
		u.warn(w)
	}
	if f.json {
		progress.Published(u.out, dir, verdict.Answer)
	}
	where := p.short(dir)
	if current {
		fmt.Fprintf(out, "%s: up to date\n", where)
	} else {
		fmt.Fprintf(out, "%s: %s\n", where, verdict)
	}
	if answer := verdict.Answer; answer != "" && !f.quiet {
		fmt.Fprintf(out, "%s: %s\n", filepath.ToSlash(filepath.Join(where, "README.md")), answer)
	}
	if n := r.Summary.Failed; n > 0 {
		u.say("%s failed, %d blocked", progress.Cells(n), r.Summary.Blocked)
		return &exitError{code: exitFailed}
	}
	if !f.accept && !verdict.OK() {
		u.hint("--accept rewrites what differs")
		return differs(true)
	}
	return differs(other)
}

// command returns the command line by which a reader repeats the run; it doesn't depend on the working
// folder.
func (f *runFlags) command(p place, x *plan.Plan) string {
	return quoted(append([]string{"runexp", "run", p.within(x.File)}, narrowing(f.narrow)...))
}
