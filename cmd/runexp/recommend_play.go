package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	_ "embed"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

//go:embed recommend.yaml.tmpl
var roundText string

// A roundPage holds the values of the template of a round.
type roundPage struct {
	*starter
	Metric metricChoice
	First  string // of the confirmation: the candidate that is tested against the others
}

// text writes a round's experiment.
func (t *tournament) text(of []candidate, first string) ([]byte, error) {
	s := *t.starter
	s.Methods, s.Count = nil, s.Folder.Images
	for _, c := range of {
		s.Methods = append(s.Methods, c.line())
	}
	var b bytes.Buffer
	page := template.Must(template.Must(starterPage().Clone()).New("round").Parse(roundText))
	err := page.Execute(&b, roundPage{&s, t.metric, first})
	return b.Bytes(), err
}

// plan plans a round.
func (t *tournament) plan(of []candidate, first string, o plan.Overrides) (*plan.Plan, error) {
	text, err := t.text(of, first)
	if err != nil {
		return nil, err
	}
	p, err := plan.Parse("a round of recommend", text, t.dir, registry.Builtin(), o)
	return p, err
}

// A game is some candidates on images of the draw: those from skip on.
type game struct {
	of           []candidate
	first        string // see [roundPage]
	images, skip int
}

// A scored is the results of a game, by candidate; the images are in the same order for all.
type scored struct {
	plan   *plan.Plan
	result *pipeline.Result // of all candidates of scores
	scores map[string][]float64
	lower  bool // smaller scores are better
}

// errTime is why a round ends that takes too long.
var errTime = errors.New("no time was left")

// play runs a game until a time, which is zero for a game without an end. Candidates that fail, or aren't
// complete then, have no scores; why says what happened to them.
func (t *tournament) play(ctx context.Context, g game, until time.Time) (
	s scored, why map[string]string, err error,
) {
	why = map[string]string{}
	for {
		if indexOf(g.of, g.first) < 0 {
			g.first = ""
		}
		if s.plan, err = t.plan(g.of, g.first, plan.Overrides{Set: []string{
			fmt.Sprintf("images.with.sample=%d", g.images),
			fmt.Sprintf("images.with.sample_skip=%d", g.skip)}}); err != nil {
			return s, nil, err
		}
		failed, err := t.execute(ctx, &s, until)
		if err != nil {
			return s, nil, err
		}
		if common := failed[""]; common != "" {
			s.result.Close()
			return s, nil, errors.New(common)
		}
		complete := slices.DeleteFunc(slices.Clone(g.of), func(c candidate) bool {
			return !s.result.State(t.cell(s.plan, c.id)).OK()
		})
		for _, c := range g.of {
			if indexOf(complete, c.id) < 0 {
				why[c.id] = cmp.Or(failed[c.id], errTime.Error())
			}
		}
		if len(complete) == len(g.of) || len(complete) == 0 {
			return s, why, t.read(ctx, &s, complete)
		}
		// A run that was cut off can't be read: what it has completed is run again, out of the store.
		s.result.Close()
		g.of, until = complete, time.Time{}
	}
}

// execute runs a plan, and returns the errors of cells by candidate, of cells of all by "". At the time
// running work is finished, and a little later abandoned.
func (t *tournament) execute(ctx context.Context, s *scored, until time.Time) (map[string]string, error) {
	failed := map[string]string{}
	display := progress.Quiet(t.u.err)
	if t.u.terminal {
		display = t.u.progress()
	}
	show := func(e pipeline.Event) {
		id := idOf(e.Cell)
		switch {
		case e.Kind == pipeline.CellFailed && (errors.Is(e.Err, errTime) ||
			errors.Is(e.Err, context.DeadlineExceeded)): // abandoned
			return
		case e.Kind == pipeline.CellFailed && e.Step != "test": // told with the candidate
			failed[id] = cmp.Or(failed[id], e.Step+": "+oneClause(e.Err.Error()))
			return
		case e.Kind == pipeline.Draining && stoppedBy(ctx) == nil: // by the time
			return
		case id != "" && e.Kind == pipeline.Warning: // a run of the experiment warns of what it compares
			return
		}
		switch e.Kind {
		case pipeline.CellStarted, pipeline.CellCompiling:
			t.u.working()
		}
		display.Show(e)
	}
	limited := ctx
	if !until.IsZero() {
		drained := ctx.Value(drainKey{}).(context.Context)
		soft, end := context.WithDeadlineCause(drained, until, errTime)
		defer end()
		hard, endHard := context.WithDeadlineCause(ctx, until.Add(t.grace), errTime)
		defer endHard()
		limited = context.WithValue(hard, drainKey{}, soft)
	}
	var err error
	s.result, err = t.session.run(limited, s.plan, show)
	display.Close()
	switch {
	case s.result == nil:
		return nil, err
	case stoppedBy(ctx) != nil || ctx.Err() != nil:
		s.result.Close()
		t.u.say("stopped; the same command goes on from here")
		return nil, cmp.Or(stoppedBy(ctx), context.Cause(ctx))
	case err != nil && !errors.Is(err, pipeline.ErrDrained) && !errors.Is(err, errTime):
		s.result.Close()
		return nil, err
	}
	return failed, nil
}

// idOf returns the candidate of a cell, such as maps[method=rise]; "" for a cell of all.
func idOf(cell string) string {
	_, id, _ := strings.Cut(strings.TrimSuffix(cell, "]"), "[method=")
	return id
}

// cell returns the cell of a candidate's scores.
func (t *tournament) cell(p *plan.Plan, id string) *plan.Cell {
	cells, err := p.Fitting(t.metric.stage + "[method=" + id + "]")
	if err != nil {
		panic(err) // the template has it
	}
	return cells[0]
}

// read reads the scores of candidates.
func (t *tournament) read(ctx context.Context, s *scored, of []candidate) error {
	s.scores = map[string][]float64{}
	for _, c := range of {
		cell := t.cell(s.plan, c.id)
		named := func(p stages.Port) bool { return p.Name == t.metric.port }
		port := slices.IndexFunc(cell.Stage.Outputs, named)
		d, err := s.result.Data(ctx, cell, port)
		if err != nil {
			return err
		}
		s.lower = stages.MeasureOf(d.Facts).Direction == stages.Lower
		list := []float64{}
		for m, err := range d.All(ctx) {
			if err != nil {
				return err
			}
			x, err := stages.ScalarOf(m.Data)
			if err != nil {
				return err
			}
			list = append(list, x)
		}
		s.scores[c.id] = list
	}
	return nil
}

// measure notes what the game's candidates cost, by the store's times. Work that several share counts
// with each.
func (t *tournament) measure(ctx context.Context, s scored) error {
	o, err := t.session.engine.Plan(ctx, s.plan)
	if err != nil {
		return err
	}
	slots := float64(len(t.session.engine.Devices))
	sum := map[string]price{}
	for _, c := range s.plan.Cells {
		id := idOf(c.String())
		if call, loading, ok := o.Cost(c); ok && id != "" {
			sum[id] = price{sum[id].image + call/slots, sum[id].loading + loading/slots}
		}
	}
	for id, p := range sum {
		t.prices[id] = p
	}
	return nil
}
