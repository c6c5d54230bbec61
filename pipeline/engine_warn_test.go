package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/stages"
)

// Warnings of one reason are reported once a cell, with a count, whatever the order of its chunks.
func TestWarningsComeOnceACellAndReason(t *testing.T) {
	const yaml = `
name: wary
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, in: {images: images}}
  mixed:  {uses: lab/mix, in: {maps: maps}, with: {fail: warn}}
publish: []
`
	for _, devices := range []string{"cpu:0", "cpu:0,cpu:1"} {
		l := newLab(t)
		l.devices, l.chunk = devices, 2
		l.items = []string{"d=7", "b=3", "a=1", "c=5"}
		l.mustRun(yaml)
		want := []string{`mixed: 4 items, such as "a": 2 is odd`, "mixed: a pile of 2 (4 such warnings)"}
		if d := cmp.Diff(want, l.said(pipeline.Warning)); d != "" {
			t.Errorf("%s: %s", devices, d)
		}
		l.items = []string{"d=7", "b=3", "a=1", "c=5", "e=9"}
		l.mustRun(yaml)
		want = []string{`mixed: item "e": 18 is odd`, "mixed: a pile of 1"}
		if d := cmp.Diff(want, l.said(pipeline.Warning)); d != "" {
			t.Errorf("%s, with an item more: %s", devices, d)
		}
	}
}

// TestUnlikeClassesAreToldOnce: where labels are of fewer classes than the model, a run tells so before cells
// fail that compare them, once for all cells.
func TestUnlikeClassesAreToldOnce(t *testing.T) {
	l := newLab(t)
	l.number(3)
	type facts = map[string]stages.Facts
	classes := func(port, n string) func(expandParams, facts) (facts, error) {
		return func(expandParams, facts) (facts, error) {
			return map[string]stages.Facts{port: {"classes": n}}, nil
		}
	}
	for _, s := range []stages.Stage{
		stages.New(stages.Def[expandParams]{
			Name: "lab/labelled", Doc: "items of ten classes", Version: 1, Facts: classes("labels", "10"),
			Outputs: []stages.Port{{Name: "labels", Type: stages.Labels}},
			Sources: func(expandParams, []string) ([]stages.Source, error) { return sourcesOf(l.items), nil },
			Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
				for i := range e.Len() {
					e.Put("labels", i, stages.Scalar(float64(i)))
				}
				return nil
			},
		}),
		stages.New(stages.Def[expandParams]{
			Name: "lab/net", Doc: "a model of a thousand", Version: 1, Relation: stages.Whole,
			Outputs: []stages.Port{{Name: "model", Type: stages.Model}},
			Run: func(_ context.Context, _ expandParams, e *stages.Env) error {
				e.Set("model", []byte("net"))
				e.SetFacts("model", stages.Facts{"classes": "1000"})
				return nil
			},
		}),
		stages.New(stages.Def[expandParams]{
			Name: "lab/judge", Doc: "fails", Version: 1,
			Inputs: []stages.Port{{Name: "labels", Type: stages.Labels},
				{Name: "model", Type: stages.Model}},
			Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
			Run: func(context.Context, expandParams, *stages.Env) error {
				return errors.New("all are wrong")
			},
		}),
	} {
		l.stages[s.Name] = &s
	}
	if _, err := l.run(`
name: unlike
stages:
  labels: {uses: lab/labelled}
  net:    {uses: lab/net}
  judge:  {uses: lab/judge, in: {labels: labels, model: net}}
  again:  {uses: lab/judge, in: {labels: labels, model: net}}
publish: [judge, again]
`); err != nil {
		t.Fatal(err)
	}
	said := l.said(pipeline.Warning)
	if len(said) != 1 || !strings.Contains(said[0], "10 classes, numbered from 0, and the model has 1000") {
		t.Errorf("told %q", said)
	}
}
