package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/publish"
)

const runHelp = `usage: runexp run FILE [FLAGS]

Checks and plans the experiment, executes what is missing, and publishes to
artifacts/<name>. What is there already is compared: "reproduced", or "differs"
and exit code 6. A failed cell doesn't keep the others from finishing.

  --accept             rewrite published rows that differ
  --fail-fast          stop at the first failure
  --force CELL         execute again, and say if the result is the same;
                       a cell or a stage, may be repeated
  --json               events as lines of JSON on stdout
  --quiet              say only what went wrong

A model that crashes ONNX Runtime, or takes more than 5 minutes of a processor's
time ($RUNEXP_MODEL_TIME, such as 20m) or more memory than is free
($RUNEXP_MODEL_MEMORY, in GB) for one batch when it is met for the first time,
costs its own cells. One that crashes later ends the run once, with exit code 70:
the same command goes on, and then that costs the model's cells alone.

A narrowed or overridden run publishes to .runexp/out/<name>/<overrides>, never to
artifacts/<name>.

  --out DIR            publish to this folder instead
` + narrowHelp + engineHelp + `
example:
  runexp run experiments/quickstart.yaml --only method=rise --limit 8
`

type runFlags struct {
	narrow                         *plan.Overrides
	engine                         *engineFlags
	accept, failFast, json, silent bool
	force                          []string
	out                            string
}

func runVerb() *verb {
	f := newFlags("run")
	r := runFlags{narrow: narrowFlags(f), engine: newEngineFlags(f)}
	f.BoolVar(&r.accept, "accept", false, "")
	f.BoolVar(&r.failFast, "fail-fast", false, "")
	f.BoolVar(&r.json, "json", false, "")
	f.BoolVar(&r.silent, "quiet", false, "")
	f.list(&r.force, "force", "")
	f.StringVar(&r.out, "out", "", "")
	return &verb{
		name: "run", short: "execute what is missing, and publish", help: runHelp, flags: f,
		run: r.run, drains: true,
	}
}

func (f *runFlags) run(ctx context.Context, u *ui, args []string) (err error) {
	plan, s, err := f.engine.loadAndOpen(u, args, f.narrow, false)
	if err != nil {
		return err
	}
	u.warnings(plan.Warnings)
	u.warnings(plan.Missing())
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if out := s.place.out(plan.Name, f.narrow); len(plan.Narrowed) > 0 && f.out != "" && sameFolder(f.out, s.place.review(plan.Name)) {
		return misuse("run", "--out %s is the reviewed folder, which a narrowed or overridden run doesn't write over: name another, or leave --out away for %s", f.out, s.place.short(out))
	}
	if err := f.usable(s.place, plan); err != nil {
		return err
	}
	s.engine.FailFast = f.failFast
	if len(f.force) > 0 {
		if s.engine.Force, err = plan.Selector(f.force); err != nil {
			return &usageError{verb: "run", err: err}
		}
	}
	display := f.display(u)
	log := newRunLog(s.place, plan)
	result, err := s.run(ctx, plan, func(e pipeline.Event) {
		if e.Kind == pipeline.CellStarted || e.Kind == pipeline.CellCompiling {
			u.working()
		}
		log.show(e)
		display.Show(e)
	})
	display.Close()
	log.close()
	if result != nil {
		defer result.Close()
	}
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		u.say("stopped with %d of %s done; the same command goes on from here", result.Summary.Cached+result.Summary.Executed, cells(result.Summary.Cells))
		return stoppedBy(ctx)
	case err != nil:
		return err
	}
	return f.publish(ctx, u, s.place, result)
}

func (f *runFlags) display(u *ui) progress.Display {
	switch {
	case f.json:
		return progress.JSON(u.out)
	case f.silent:
		return progress.Quiet(u.err)
	case u.terminal:
		return progress.Bar(u.err, u.width, time.Now)
	}
	return progress.Lines(u.err, time.Now)
}

// folder is where the run publishes.
func (f *runFlags) folder(p place, plan *plan.Plan) string {
	switch {
	case f.out != "":
		return f.out
	case len(plan.Narrowed) > 0:
		return p.out(plan.Name, f.narrow)
	}
	return p.review(plan.Name)
}

// usable returns an error, before anything is computed, if the run mustn't publish
// to its folder.
func (f *runFlags) usable(p place, plan *plan.Plan) error {
	dir := f.folder(p, plan)
	err := p.real(dir)
	if f.out != "" {
		err = p.realNamed(dir)
	}
	if err != nil {
		return err
	}
	err = publish.Check(dir)
	var foreign *publish.ForeignError
	switch {
	case errors.As(err, &foreign) && f.out != "":
		return &usageError{verb: "run", err: fmt.Errorf("--out %s: %w", f.out, err), hint: "--out " + quote(filepath.Join(f.out, plan.Name)) + " would make a folder of its own there"}
	case err != nil:
		return environment(err)
	}
	return nil
}

// publish brings the review folder up to date and says how it compares.
func (f *runFlags) publish(ctx context.Context, u *ui, p place, r *pipeline.Result) error {
	out := io.Writer(u.out)
	if f.json {
		out = u.err
	}
	var differs bool
	for _, c := range r.Forced {
		differs = differs || !c.Reproduced
		fmt.Fprintf(out, "%s: %s\n", c.Cell, c)
	}
	dir := f.folder(p, r.Plan)
	verdict, current, err := r.Publish(ctx, dir, f.command(p, r.Plan), publish.Options{Accept: f.accept})
	if err != nil {
		return err
	}
	where := p.short(dir)
	for _, w := range verdict.Warnings {
		u.warn(w)
	}
	switch {
	case current:
		fmt.Fprintf(out, "%s: up to date\n", where)
	default:
		fmt.Fprintf(out, "%s: %s\n", where, verdict)
	}
	if answer := publish.Answer(dir); answer != "" && !f.silent {
		fmt.Fprintf(out, "%s: %s\n", filepath.ToSlash(filepath.Join(where, "README.md")), answer)
	}
	if n := r.Summary.Failed; n > 0 {
		u.say("%s failed, %d blocked", cells(n), r.Summary.Blocked)
		return &exitError{code: exitFailed}
	}
	if !f.accept && !verdict.OK() {
		u.hint("--accept rewrites what differs")
		return &exitError{code: exitDiffers}
	}
	if differs {
		return &exitError{code: exitDiffers}
	}
	return nil
}

// sameFolder reports whether two paths lead to one folder, be it there or not.
func sameFolder(a, b string) bool { return resolved(a) == resolved(b) }

// resolved is the absolute path without links, as far as it exists.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// command is how a reader repeats the run, the same from whatever folder it was
// started.
func (f *runFlags) command(p place, plan *plan.Plan) string {
	text := "runexp run " + quote(p.within(plan.File))
	for _, s := range f.narrow.Set {
		text += " --set " + quote(s)
	}
	for _, s := range f.narrow.Only {
		text += " --only " + quote(s)
	}
	if f.narrow.Limit > 0 {
		text += fmt.Sprintf(" --limit %d", f.narrow.Limit)
	}
	return text
}

// within names a file relative to the place, or by its last element if it lies
// elsewhere, so that the name is no one's own.
func (p place) within(file string) string {
	abs, err := filepath.Abs(file)
	if err == nil {
		if rel, err := filepath.Rel(p.root, abs); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.Base(file)
}

// short names a folder relative to the place if it lies there.
func (p place) short(dir string) string {
	if rel, err := filepath.Rel(p.root, dir); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return dir
}
