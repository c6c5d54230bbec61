package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
)

// engineFlags are those of every verb that looks into the store or computes.
type engineFlags struct {
	verb                    string
	store, devices, runtime string
	batch, chunk            int
	same                    bool
}

func newEngineFlags(f *flags) *engineFlags {
	e := &engineFlags{verb: f.Name()}
	f.StringVar(&e.store, "store", os.Getenv("RUNEXP_STORE"), "")
	f.StringVar(&e.devices, "devices", "cpu", "")
	f.StringVar(&e.runtime, "onnxruntime", "", "")
	f.count(&e.batch, "batch", "")
	f.count(&e.chunk, "chunk", "")
	f.BoolVar(&e.same, "same-device", false, "")
	return e
}

const engineHelp = `
  --store DIR          where results are kept: $RUNEXP_STORE, or .runexp/store in
                       the repository's folder
  --devices LIST       cpu: a worker for each core; cpu:0: one with all cores;
                       cpu:0,cpu:1: two that share them; cuda:0,cuda:1
  --batch N            passes handed to a device at once (16), or fewer: a
                       processor has no more than its cache holds
  --chunk N            items of one piece of work
  --same-device        take only stored results that the same kind of device made
  --onnxruntime PATH   the library, or a folder that has it: $ONNXRUNTIME_LIB, lib/
                       beside the program, the user's cache folder, the system
`

const narrowHelp = `
  --set A.with.P=V     override a parameter (also axes.…, seed=N); may be repeated
  --only AXIS=ID,…     keep only these ids of an axis; may be repeated
  --limit N            at most N sources a data set
`

// A session is a place, an open store and an engine that uses it.
type session struct {
	place  place
	engine *pipeline.Engine
	store  *store.Store
}

// loadAndOpen loads the one experiment among a verb's arguments while it opens the
// store. What is wrong with the experiment counts first.
func (e *engineFlags) loadAndOpen(u *ui, args []string, narrow *plan.Overrides, reader bool) (plan *plan.Plan, s *session, err error) {
	s, err = e.openWhile(u, reader, func() (err error) {
		plan, err = loadPlan(e.verb, args, narrow)
		return err
	})
	return plan, s, err
}

// open opens the store and sets up the engine. A reader changes nothing on disk.
func (e *engineFlags) open(u *ui, reader bool) (*session, error) {
	return e.openWhile(u, reader, func() error { return nil })
}

// openWhile is open, beside something else without which nothing may change on disk.
func (e *engineFlags) openWhile(u *ui, reader bool, other func() error) (*session, error) {
	var wg conc.WaitGroup
	var before error
	wg.Go(func() { before = other() })
	s, err := e.setUp(u, reader)
	wg.Wait()
	if before != nil {
		err = before
	} else if err == nil && !reader && e.store == "" {
		err = s.place.prepare()
	}
	if err != nil && s != nil {
		s.store.Close()
		s = nil
	}
	return s, err
}

func (e *engineFlags) setUp(u *ui, reader bool) (*session, error) {
	devices, err := device.Parse(e.devices)
	if err != nil {
		return nil, &usageError{verb: e.verb, err: err}
	}
	registry.UseRuntime(e.runtime)
	p, err := here()
	if err != nil {
		return nil, err
	}
	dir := e.store
	if dir == "" {
		dir = p.store()
		if err := p.real(dir); err != nil {
			return nil, err
		}
	}
	st, err := store.Open(dir, store.Options{ReadOnly: reader, Warn: u.warn, Hook: u.hook})
	if err != nil {
		return nil, environment(err)
	}
	for _, d := range devices {
		if d.Class != "cuda" || reader {
			continue
		}
		r, err := registry.OpenRuntime()
		if err != nil {
			return nil, environment(err)
		}
		if err := r.CUDA(d.Index); err != nil {
			return nil, environment(fmt.Errorf("device %s: %w", d, err))
		}
	}
	build := compiler(st, e.runtime)
	if !reader {
		registry.Watch(filepath.Join(dir, "running"), build)
	}
	return &session{place: p, store: st, engine: &pipeline.Engine{
		Store: st, Devices: devices, Batch: e.batch, Chunk: e.chunk, SameDevice: e.same, MadeBy: madeBy(st, e.runtime),
		Compiler: build,
	}}, nil
}

// outlook looks ahead at what a run would do, and shows what takes long of that.
func (s *session) outlook(ctx context.Context, u *ui, plan *plan.Plan) (*pipeline.Outlook, error) {
	display := progress.Lines(u.err, time.Now)
	if u.terminal {
		display = progress.Bar(u.err, u.width, time.Now)
	}
	defer display.Close()
	s.engine.OnEvent = display.Show
	return s.engine.Plan(ctx, plan)
}

// prepare makes the folder .runexp, and keeps it out of the user's commits.
func (p place) prepare() error {
	dir := filepath.Join(p.root, ".runexp")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return environment(err)
	}
	// Whatever stands there is the user's, be it a link to nowhere.
	f, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString("*\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return environment(err)
	}
	return nil
}

// run executes what is missing of plan. A runtime that can't be had and a store that
// can't be written end the run at once, instead of failing every cell.
func (s *session) run(ctx context.Context, plan *plan.Plan, show func(pipeline.Event)) (*pipeline.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.engine.OnEvent = func(e pipeline.Event) {
		if registry.NoRuntime(e.Err) || errors.Is(e.Err, store.ErrUnwritable) {
			cancel(environment(e.Err))
			return
		}
		show(e)
	}
	return s.engine.Run(ctx, plan, draining(ctx))
}
