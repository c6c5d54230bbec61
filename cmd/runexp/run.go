package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
)

func runVerb(f flags) *verb {
	r := runFlags{}
	f["--accept"], f["--fail-fast"], f["--force"] = &r.accept, &r.failFast, &r.force
	f["--json"], f["--quiet"], f["--out"], f["--html"] = &r.json, &r.quiet, &r.out, &r.html
	f["--share"], f["--partial"] = &r.share, &r.partial
	r.narrow, r.engine = f.narrow(), f.engine()
	return &verb{
		name: "run", takes: arity{1, 1, "an experiment file"}, drains: true,
		run: func(ctx context.Context, u *ui, args []string) error {
			if r.share != "" {
				return r.runShare(ctx, u, args[0])
			}
			return r.run(ctx, u, args[0])
		},
	}
}

type runFlags struct {
	narrow                        *plan.Overrides
	engine                        *engineFlags
	accept, failFast, json, quiet bool
	html, partial                 bool
	force                         []string
	out, share                    string
}

// run executes the missing cells of an experiment, and publishes the results.
func (f *runFlags) run(ctx context.Context, u *ui, file string) error {
	p, s, err := f.engine.loadAndOpen(ctx, u, file, f.narrow, false)
	if err != nil {
		return err
	}
	result, dir, err := f.execute(ctx, u, s, &runLog{place: s.place, plan: p})
	if result != nil {
		defer result.Close()
	}
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		return stoppedBy(ctx)
	case err != nil:
		return err
	}
	return f.publish(ctx, u, s, result, dir)
}

// execute executes the missing cells of an experiment. dir is the folder into which the results may be
// published.
func (f *runFlags) execute(ctx context.Context, u *ui, s *session, log *runLog) (
	result *pipeline.Result, dir string, err error,
) {
	p := log.plan
	if err := u.fetch(ctx, p, f.quiet); err != nil {
		return nil, "", err
	}
	for _, d := range slices.Concat(p.Warnings, p.Missing(), p.Remarks(), unpinned(p)) {
		u.warn(d.String())
	}
	if dir, err = f.folder(s.place, p); err != nil {
		return nil, "", err
	}
	s.engine.FailFast = f.failFast
	if len(f.force) > 0 {
		if s.engine.Force, err = p.Selector(f.force); err != nil {
			return nil, "", usage(err, "")
		}
	}
	display := f.display(u)
	result, err = s.run(ctx, p, func(e pipeline.Event) {
		switch e.Kind {
		case pipeline.Planned: // before there is a bar
			if e.Done < e.Total && !f.quiet && !f.json {
				u.powers(p)
			}
		case pipeline.CellStarted, pipeline.CellCompiling:
			u.working()
		}
		log.show(e)
		display.Show(e)
	})
	display.Close()
	log.close()
	if result != nil {
		s.reportProbation(u, result, f.quiet)
		if !f.quiet {
			s.reportCompiling(u, result)
		}
	}
	if errors.Is(err, pipeline.ErrDrained) {
		sum := result.Summary
		const text = "stopped with %d of %s done; the same command goes on from here"
		u.say(text, sum.Cached+sum.Executed, progress.Cells(sum.Cells))
	}
	return result, dir, err
}

// display returns the display of the run's events.
func (f *runFlags) display(u *ui) progress.Display {
	switch {
	case f.json:
		return progress.JSON(u.out)
	case f.quiet:
		return progress.Quiet(u.err)
	}
	return u.progress()
}

// publish updates the review folder, and writes its page if requested. Results with failed cells are
// published only if asked for: a table without a method's rows reads like one that compares all.
func (f *runFlags) publish(ctx context.Context, u *ui, s *session, r *pipeline.Result, dir string) error {
	out := io.Writer(u.out)
	if f.json {
		out = u.err
	}
	if r.Summary.Failed > 0 && !f.partial {
		u.failed(r, ": nothing is published")
		u.hint("what was computed is kept; --partial publishes it without what failed")
		return &exitError{code: exitFailed}
	}
	err := f.update(ctx, u, out, s.place, r, dir)
	if f.html {
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

// update updates the review folder and reports how the results compare with it.
func (f *runFlags) update(ctx context.Context, u *ui, out io.Writer, p place, r *pipeline.Result, dir string,
) error {
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
	if r.Summary.Failed > 0 {
		u.failed(r, "")
		return &exitError{code: exitFailed}
	}
	if !f.accept && !verdict.OK() {
		u.hint("--accept rewrites what differs")
		return differs(true)
	}
	return differs(other)
}

// command returns the command line by which a reader repeats the run; it depends neither on the working
// folder nor on who allowed functions in Python.
func (f *runFlags) command(p place, x *plan.Plan) string {
	o := *f.narrow
	o.Python = slices.ContainsFunc(x.Cells, func(c *plan.Cell) bool {
		return strings.Contains(c.Stage.Name, ".py:")
	})
	return quoted(append([]string{"runexp", "run", p.within(x.File)}, narrowing(&o)...))
}
