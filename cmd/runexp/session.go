package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

// load loads an experiment. The first signal ends it, also while a file in Python is imported.
func load(ctx context.Context, file string, o *plan.Overrides) (*plan.Plan, error) {
	ctx, stop := untilSignal(ctx)
	defer stop()
	p, err := plan.Load(file, registry.Builtin(), withRemotes(ctx, file, *o))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && !errors.As(err, new(plan.Diags)) {
		return nil, usage(err, "give the path of an experiment file")
	}
	return p, err
}

// A session is a place, an open store and an engine that uses it.
type session struct {
	place  place
	engine *pipeline.Engine
	store  *store.Store
}

// loadAndOpen loads an experiment and then opens a session for it: errors of the experiment are reported
// before those of the environment. A verb that calls open first has them the other way round.
func (e *engineFlags) loadAndOpen(ctx context.Context, u *ui, file string, o *plan.Overrides, reader bool) (
	*plan.Plan, *session, error,
) {
	p, err := load(ctx, file, o)
	if err != nil {
		return nil, nil, err
	}
	s, err := e.openFor(ctx, u, p, reader)
	return p, s, err
}

// openFor opens a session for an experiment. Unless it is a reader's, results of other machines are added
// to the store first.
func (e *engineFlags) openFor(ctx context.Context, u *ui, p *plan.Plan, reader bool) (*session, error) {
	s, err := e.open(u, reader)
	if err != nil || reader {
		return s, err
	}
	return s, s.addShares(ctx, u, p.Name)
}

// open opens the store, until the verb ends, and sets up the engine. A reader changes nothing on disk.
func (e *engineFlags) open(u *ui, reader bool) (*session, error) {
	devices, err := device.Parse(e.devices)
	if err != nil {
		return nil, usage(err, "")
	}
	ort.Use(e.runtime)
	p, err := here()
	if err != nil {
		return nil, err
	}
	dir, err := e.folder(p)
	if err != nil {
		return nil, err
	}
	openStore := e.openStore
	if openStore == nil {
		openStore = store.Open
	}
	st, err := openStore(dir, store.Options{ReadOnly: reader, Warn: u.warn, Hook: u.hook})
	if err != nil {
		return nil, environment(err)
	}
	u.closing = append(u.closing, st.Close)
	build := compiler(st, e.runtime)
	if !reader {
		used, err := usable(devices...)
		if err != nil {
			return nil, err
		}
		for i, a := range used {
			if a.Software {
				const text = "%s is %s, a GPU imitated by the processor: --devices cpu is faster"
				u.warn(fmt.Sprintf(text, devices[i], a.Name))
			}
		}
		if e.store == "" {
			if err := p.prepare(); err != nil {
				return nil, err
			}
		}
		ort.Watch(cmp.Or(e.running, filepath.Join(dir, "running")), build)
	}
	return &session{place: p, store: st, engine: &pipeline.Engine{
		Store: st, Devices: devices, Batch: e.batch, Chunk: e.chunk, Compare: int(e.compare),
		SameDevice: e.same, MadeBy: madeBy(st, e.runtime), Compiler: build,
		Has: func(precision string) error { return hasPrecision(devices[0].Class, precision) },
	}}, nil
}

// hasPrecision returns nil if a class of devices computes in a precision here. It is replaced in tests.
var hasPrecision = func(class, precision string) error {
	r, err := ort.Default()
	if err != nil {
		return environment(err)
	}
	return r.Has(stages.Device{Class: class, Precision: precision})
}

// folder returns the store's folder, which inside the place must not be behind a link.
func (e *engineFlags) folder(p place) (string, error) {
	if e.store != "" {
		return e.store, nil
	}
	return p.store(), p.real(p.store())
}

// usable returns the adapters of devices of one class, none for processors, or an error if a device can't
// be used.
func usable(devices ...stages.Device) ([]ort.Adapter, error) {
	class := devices[0].Class
	if class == "cpu" {
		return nil, nil
	}
	r, err := ort.Default()
	if err != nil {
		return nil, environment(err)
	}
	used, err := r.Adapters(devices...)
	var none *ort.NoDevice
	switch {
	case err == nil:
		return used, nil
	case errors.As(err, &none):
		return nil, &exitError{exitEnvironment, fmt.Errorf("%s: %s", class, none.Reason), none.Remedy}
	}
	return nil, environment(fmt.Errorf("%s: %w", class, err))
}

// outlook predicts what a run would execute, and shows its progress if that takes long.
func (s *session) outlook(ctx context.Context, u *ui, p *plan.Plan) (*pipeline.Outlook, error) {
	display := u.progress()
	defer display.Close()
	s.engine.OnEvent = display.Show
	return s.engine.Plan(ctx, p)
}

// progress returns a display for people.
func (u *ui) progress() progress.Display {
	if u.terminal {
		return progress.Bar(u.err, u.width, time.Now)
	}
	return progress.Lines(u.err, time.Now)
}

// reportProbation reports how much the results of other devices deviate from the processor's, and the cost of
// that comparison. If quiet, it reports only a problem.
func (s *session) reportProbation(u *ui, r *pipeline.Result, quiet bool) {
	if what := s.uncompared(r); what != "" {
		const text = "--compare 0: nothing that %s has computed was compared with the processor"
		u.warn(fmt.Sprintf(text, what))
	}
	p := r.Probation
	off := 0
	var list []string
	for _, c := range p.Programs {
		text := fmt.Sprintf("%s %.1g", c.Stage, c.Largest.By)
		if off += c.Off; c.Off > 0 {
			text += fmt.Sprintf(" of %s (%d of %d items beyond %g)", c.Largest.Quantity, c.Off, c.Items,
				c.Largest.Tolerance)
		}
		list = append(list, text)
	}
	took := p.Took.Seconds()
	items := "items"
	if p.Items == 1 {
		items = "item"
	}
	text := fmt.Sprintf("compared with the processor: %d %s in %.1f s, %.0f%% of the run's time; "+
		"largest deviations: %s", p.Items, items, took, 100*took/r.Summary.Took.Seconds(),
		strings.Join(list, ", "))
	switch {
	case off > 0:
		u.warn(text)
	case p.Items > 0 && !quiet:
		u.say("%s", text)
	}
}

// uncompared returns what computed results in this run without a comparison: a class, or the processor in
// another precision; "" if nothing did.
func (s *session) uncompared(r *pipeline.Result) string {
	class := s.engine.Devices[0].Class
	if s.engine.Compare >= 0 || r.Summary.Items == 0 {
		return ""
	}
	if class != "cpu" {
		return class
	}
	for _, c := range r.Plan.Cells {
		p := stages.PrecisionOf(c.Params)
		if c.Stage.Device && p != stages.Float32 {
			return class + " in " + p
		}
	}
	return ""
}

// reportCompiling says what it took to compile programs, if that is worth it.
func (s *session) reportCompiling(u *ui, r *pipeline.Result) {
	took, all := r.Summary.Compiling.Seconds(), r.Summary.Took.Seconds()
	if worthSaying(took, all) && r.Summary.Programs > 0 {
		u.say("compiled %s in %.1f s, %.0f%% of the run's time", programCount(r.Summary.Programs), took,
			100*took/all)
	}
}

// run executes the missing cells of a plan. If the runtime is unusable or the store can't be written, the
// run ends at once instead of failing every cell.
func (s *session) run(ctx context.Context, p *plan.Plan, show func(pipeline.Event)) (
	*pipeline.Result, error,
) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.engine.OnEvent = func(e pipeline.Event) {
		if ort.NoRuntime(e.Err) || errors.Is(e.Err, store.ErrUnwritable) {
			cancel(environment(e.Err))
			return
		}
		show(e)
	}
	result, err := s.engine.Run(ctx, p, draining(ctx))
	return result, unfit(err)
}

// unfit returns an error of a device that can't be used as one of the machine, with its remedy as the hint.
func unfit(err error) error {
	var none *ort.NoDevice
	if !errors.As(err, &none) {
		return err
	}
	why := strings.TrimSuffix(err.Error(), ": "+none.Remedy)
	return &exitError{exitEnvironment, errors.New(why), none.Remedy}
}

// complete executes the missing cells of a plan, and reports only problems. A failed cell is an error.
func (s *session) complete(ctx context.Context, u *ui, p *plan.Plan) (*pipeline.Result, error) {
	if err := u.fetch(ctx, p, false); err != nil {
		return nil, err
	}
	display := progress.Quiet(u.err)
	result, err := s.run(ctx, p, display.Show)
	display.Close()
	if result != nil {
		s.reportProbation(u, result, true)
	}
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		err = stoppedBy(ctx)
	case err == nil && result.Summary.Failed > 0:
		failed := progress.Cells(result.Summary.Failed)
		err = &exitError{code: exitFailed, err: fmt.Errorf("%s failed", failed)}
	}
	if err != nil && result != nil {
		result.Close()
		result = nil
	}
	return result, err
}
