package pipeline_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
)

// A stage that breaks its promises fails as a bug, by name; nothing it made is kept.
func TestBrokenPromises(t *testing.T) {
	for _, tc := range []struct{ stage, want string }{
		{"{uses: lab/stray, in: {images: images}, with: {do: twins}}",
			`makes two items "x" of the item "a" on port "images"`},
		{"{uses: lab/stray, in: {images: images}, with: {do: port}}", `on port "imgaes"`},
		{"{uses: lab/sourced, in: {images: images}, with: {short: true}}", "lists 1 sources for 2 items"},
	} {
		l := newLab(t)
		l.items = []string{"a=1", "b=2"}
		res, err := l.run("name: broken\nstages:\n  images: {uses: lab/source}\n  bad: " + tc.stage +
			"\npublish: []\n")
		if err != nil {
			t.Fatal(err)
		}
		if f, why := ended(t, res, "bad"); f != schedule.Failed ||
			!strings.HasPrefix(why, "a bug in runexp: stage lab/") || !strings.Contains(why, tc.want) {
			t.Errorf("%s: %d %q", tc.stage, f, why)
		}
		res.Close()
	}
}

// missing: drop goes on with what is there, on ports of values too, and gives up when an input has nothing
// left.
func TestDropWhatIsMissing(t *testing.T) {
	const yaml = `
name: drop
axes:
  m: {u: {fail: %t}, vv: {fail: true}, www: {fail: %t}}
stages:
  images: {uses: lab/source}
  models: {uses: lab/value, matrix: [m], with: {text: "x", fail: "${m.fail}"}}
  votes:  {uses: lab/vote, in: {images: images, models: models.model}, over: [m], missing: drop}
  strict: {uses: lab/vote, in: {images: images, models: models.model}, over: [m]}
  alone:  {uses: lab/add, in: {maps: bad}, missing: drop}
  bad:    {uses: lab/scale, in: {images: images}, with: {fail: true}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1"}
	for _, tc := range []struct {
		u, www bool // fail
		votes  string
	}{{false, false, "a=1131 "}, {false, true, "a=11 "}, {true, true, ""}} {
		_, o := l.outlook(fmt.Sprintf(yaml, tc.u, tc.www)) // must not trip over what failed
		_ = o
		res, err := l.run(fmt.Sprintf(yaml, tc.u, tc.www))
		if err != nil {
			t.Fatal(err)
		}
		f, why := ended(t, res, "votes")
		switch {
		case tc.votes == "" && (f != schedule.Blocked || why != "it needs models[m=u], which failed"):
			t.Errorf("nothing is left: %d %q", f, why)
		case tc.votes != "" && f > schedule.Done:
			t.Errorf("%+v: %d %q", tc, f, why)
		case tc.votes != "":
			if got := l.text(res, "votes"); got != tc.votes {
				t.Errorf("%+v: got %q", tc, got)
			}
		}
		for _, cell := range []string{"strict", "alone"} {
			if f, _ := ended(t, res, cell); f != schedule.Blocked {
				t.Errorf("%s ended as %d", cell, f)
			}
		}
		res.Close()
	}
}

// Stages that take items one by one refuse the cells of an axis at once, however many ids the axis has.
func TestOverOfItems(t *testing.T) {
	const yaml = `
name: over
axes:
  by: %s
stages:
  images: {uses: lab/source}
  maps:   {uses: lab/scale, matrix: [by], in: {images: images}, with: {by: "${by}"}}
  bad:    {uses: %s, over: [by]}
publish: []
`
	for _, ids := range []string{"[1]", "[1, 2]"} {
		for _, uses := range []string{"lab/add, in: {maps: maps}", "lab/mix, in: {maps: maps}"} {
			_, err := plan.Parse("lab.yaml", []byte(fmt.Sprintf(yaml, ids, uses)), ".", newLab(t),
				plan.Overrides{})
			if err == nil || !strings.Contains(err.Error(), "takes the items of one cell") {
				t.Errorf("%s over %s: %v", uses, ids, err)
			}
		}
	}
}

func TestForcedCells(t *testing.T) {
	const yaml = `
name: drift
stages:
  images: {uses: lab/source}
  drift:  {uses: lab/stray, in: {images: images}, with: {do: drift}}
publish: []
`
	l := newLab(t)
	l.items = []string{"a=1", "b=2"}
	l.mustRun(yaml)
	l.force = []string{"drift"}
	res := l.mustRun(yaml)
	if f := res.Forced; len(f) != 1 || f[0].Reproduced || f[0].Deviation != 0.5/599.25 ||
		f[0].String() != `differs with a deviation of 0.000834: port "images", item 1 of 2` {
		t.Errorf("forced: %+v", f)
	}
	l.items, l.drift = []string{"a=1", "b=2"}, math.Inf(1)
	if f := l.mustRun(yaml).Forced; len(f) != 1 || !math.IsInf(f[0].Deviation, 1) {
		t.Errorf("forced: %+v", f)
	}
	l.items, l.drift = []string{"a=1", "b=2"}, math.NaN()
	if f := l.mustRun(yaml).Forced; len(f) != 1 || !math.IsInf(f[0].Deviation, 1) ||
		!strings.Contains(f[0].String(), "in what is undefined") {
		t.Errorf("forced: %+v", f)
	}
}

// A forced cell in the middle of a stream is executed and compared too.
func TestForcedInAStream(t *testing.T) {
	l := newLab(t)
	l.number(5)
	l.mustRun(flowing)
	l.force = []string{"maps", "scores"}
	res := l.mustRun(flowing)
	l.want("forced", "scale", 5, "add", 5, "sum", 0)
	if len(res.Forced) != 2 || !res.Forced[0].Reproduced || !res.Forced[1].Reproduced {
		t.Errorf("forced: %+v", res.Forced)
	}
}
