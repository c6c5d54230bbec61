package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/stages"
)

func submitVerb(f flags) *verb {
	s := submitFlags{narrow: f.narrow(), engine: f.engine()}
	f["--slurm"], f["--devices"], f["--shares"] = &s.slurm, &s.devices, &s.shares
	f["--dry-run"] = &s.dry
	return &verb{
		name: "submit", takes: arity{1, anyNumber, "an experiment file"}, drains: true,
		run: s.submit,
	}
}

type submitFlags struct {
	narrow          *plan.Overrides
	engine          *engineFlags
	slurm, dry      bool
	devices, shares int
}

func (f *submitFlags) submit(ctx context.Context, u *ui, args []string) error {
	c, err := f.scheduler(args)
	if err != nil {
		return err
	}
	p, s, err := f.engine.loadAndOpen(ctx, u, args[0], f.narrow, f.dry)
	if err != nil {
		return err
	}
	if c.gpus() { // whose speed counts
		s.engine.Devices = []stages.Device{{Class: "cuda"}}
	}
	o, err := f.prepare(ctx, u, s, p)
	if err != nil {
		return err
	}
	if o.Complete() {
		fmt.Fprintf(u.out, "%s, all cached: nothing to submit\n", progress.Cells(len(p.Cells)))
		if f.dry {
			return nil
		}
		return f.publish(ctx, u, s, p)
	}
	jobs, err := f.jobs(ctx, c, s.place, p, o)
	if err != nil {
		return err
	}
	if f.dry {
		return c.print(u.out, jobs)
	}
	if err := f.makeLogs(s.place, c.logs); err != nil {
		return err
	}
	if err := o.Extract(); err != nil {
		return environment(err)
	}
	return c.submit(ctx, u, jobs)
}

// scheduler returns the scheduler that the arguments ask for, with its options.
func (f *submitFlags) scheduler(args []string) (*slurm, error) {
	file, options := args[0], args[1:]
	switch {
	case strings.HasPrefix(file, "-"):
		return nil, misuse("the experiment file comes before --, and options of sbatch after it")
	case len(options) > 0 && !strings.HasPrefix(options[0], "-"):
		return nil, misuse("submit takes one argument, an experiment file, and options of sbatch after "+
			"--: %q",
			options[0])
	case !f.slurm:
		return nil, misuse("submit needs the name of the scheduler: --slurm")
	}
	c := &slurm{options: options}
	if err := c.check(); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("sbatch"); err != nil && !f.dry {
		const hint = "submit where Slurm's commands are, such as a login node; --dry-run prints the scripts"
		return nil, &exitError{exitEnvironment, errors.New("there is no sbatch in PATH"), hint}
	}
	return c, nil
}

// jobs returns what is to be submitted.
func (f *submitFlags) jobs(ctx context.Context, c *slurm, at place, p *plan.Plan, o *pipeline.Outlook) (
	[]*slurmJob, error,
) {
	run, err := f.program(p.File)
	if err != nil {
		return nil, err
	}
	folder, err := f.engine.folder(at)
	if err != nil {
		return nil, err
	}
	c.logs = filepath.Join(at.root, ".runexp", "slurm")
	if c.name, err = jobName(p, f.narrow, folder); err != nil {
		return nil, err
	}
	largest := defaultArray
	if !f.dry {
		largest = c.largestArray(ctx)
	}
	shares := func(w *pipeline.Wave) int { return f.sharesOf(w, o.Origins(), largest, c) }
	return c.jobs(o, run, shares, f.devices), nil
}

// publish publishes the results, as the last job would, if nothing is missing.
func (f *submitFlags) publish(ctx context.Context, u *ui, s *session, p *plan.Plan) error {
	r := runFlags{narrow: f.narrow, engine: f.engine}
	dir, err := r.folder(s.place, p)
	if err != nil {
		return err
	}
	result, err := s.complete(ctx, u, p)
	if err != nil {
		return err
	}
	defer result.Close()
	return r.publish(ctx, u, s, result, dir)
}

// program returns the command line of a job without its share: this program, and what the user asked for.
func (f *submitFlags) program(file string) ([]string, error) {
	self, err := exec.LookPath(os.Args[0])
	if err == nil {
		self, err = filepath.Abs(self)
	}
	if err != nil {
		return nil, environment(err)
	}
	if strings.HasPrefix(file, "-") {
		file = "./" + file
	}
	run := append([]string{self, "run", file}, narrowing(f.narrow)...)
	for _, given := range []struct{ flag, path string }{
		{"--store", f.engine.store}, {"--onnxruntime", f.engine.runtime},
	} {
		if given.path == "" {
			continue
		}
		path, err := filepath.Abs(given.path)
		if err != nil {
			return nil, environment(err)
		}
		run = append(run, given.flag, path)
	}
	for _, given := range []struct {
		flag  string
		value int
	}{{"--batch", f.engine.batch}, {"--chunk", f.engine.chunk}} {
		if given.value > 0 {
			run = append(run, given.flag, fmt.Sprint(given.value))
		}
	}
	if usual := (flags{}).engine().compare; f.engine.compare != usual {
		run = append(run, "--compare", f.engine.compare.String())
	}
	if f.engine.same {
		run = append(run, "--same-device")
	}
	return run, nil
}

// makeLogs makes the folder of the jobs' output, since Slurm doesn't.
func (f *submitFlags) makeLogs(p place, dir string) error {
	if err := cmp.Or(p.prepare(), p.real(dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return environment(err)
	}
	return nil
}

// prepare makes the common inputs of all shares, which no share should make alone: the files that the
// experiment names by address, and the models. A dry run only looks.
func (f *submitFlags) prepare(ctx context.Context, u *ui, s *session, p *plan.Plan) (
	*pipeline.Outlook, error,
) {
	for _, d := range slices.Concat(p.Warnings, p.Missing(), p.Remarks(), unpinned(p)) {
		u.warn(d.String())
	}
	o, err := s.outlook(ctx, u, p)
	if err != nil || f.dry || o.Complete() {
		return o, err
	}
	if err := u.fetch(ctx, p, false); err != nil {
		return nil, err
	}
	cells := o.Values()
	if len(cells) == 0 {
		return o, nil
	}
	if err := s.partly(ctx, p.UpTo(cells...)); err != nil {
		return nil, err
	}
	return s.outlook(ctx, u, p)
}

// partly executes the missing cells of a part of a plan. A failed cell isn't an error here: it will fail in
// its share.
func (s *session) partly(ctx context.Context, part *plan.Plan) error {
	s.engine.OnEvent = nil
	result, err := s.engine.Run(ctx, part, draining(ctx))
	if result != nil {
		result.Close()
	}
	if errors.Is(err, pipeline.ErrDrained) {
		return stoppedBy(ctx)
	}
	return unfit(err)
}

// What a share should take at most: long enough that its start doesn't count, short enough that little is
// lost with it. Slurm's arrays have at most defaultArray tasks unless its configuration says otherwise.
const (
	shareTime    = 8 * time.Minute
	defaultArray = 1001
)

// sharesOf returns how many shares a wave is cut into: as many as devices, doubled until there are enough. So
// devices end together, and what a share reads of an earlier wave is in few files, too, as the shares of one
// number divide those of the other.
func (f *submitFlags) sharesOf(w *pipeline.Wave, origins, largest int, c *slurm) int {
	if f.shares > 0 {
		return min(f.shares, largest)
	}
	shares := max(f.devices, 1)
	for enough := f.enoughShares(w, c); shares < enough && 2*shares <= largest; {
		shares *= 2
	}
	if origins > 0 {
		shares = min(shares, origins)
	}
	return min(shares, largest)
}

// enoughShares returns the number of shares that take shareTime each, by the known times.
func (f *submitFlags) enoughShares(w *pipeline.Wave, c *slurm) int {
	measured := len(w.Cells) - w.Missing.Unknown
	if 2*measured <= len(w.Cells) { // enough for devices to end at about the same time
		return max(8*f.devices, 64)
	}
	// A cell of unknown cost counts as an average one.
	seconds := w.Missing.Seconds * float64(len(w.Cells)) / float64(measured) / float64(c.slots())
	each := shareTime
	if limit, ok := c.timeLimit(); ok {
		each = min(each, limit*3/4)
	}
	return int(math.Ceil(seconds / each.Seconds()))
}

// jobName names the jobs of an experiment on this store, so that squeue finds them.
func jobName(p *plan.Plan, o *plan.Overrides, folder string) (string, error) {
	file, err := filepath.Abs(p.File)
	if err != nil {
		return "", environment(err)
	}
	text := strings.Join([]string{resolved(file), resolved(folder), settings(o)}, "\x00")
	id := stages.Sum([]byte(text))
	return fmt.Sprintf("runexp-%s-%.4x", withoutOthers(p.Name, "._-"), id[:]), nil
}
