package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// shared scales items, several cells at once.
func (l *lab) shared() stages.Stage {
	return stages.New(stages.Def[scaleParams]{
		Name: "lab/shared", Doc: "scaled items", Version: 1, Device: true, Defaults: scaleParams{By: 2},
		Shared:  &stages.SharedRun{Run: l.scaleShared},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Program: func(_ context.Context, p scaleParams, _ *stages.Env) (stages.Digest, error) {
			if p.By == l.slow {
				time.Sleep(100 * time.Millisecond)
			}
			return stages.Sum(fmt.Append(nil, p.By)), nil
		},
	})
}

func (l *lab) scaleShared(_ context.Context, parts []stages.Part) error {
	line := fmt.Sprintf("%d of", parts[0].Env.Len())
	for _, part := range parts {
		line += fmt.Sprintf(" %g", part.Params.(*scaleParams).By)
	}
	l.mu.Lock()
	l.saw = append(l.saw, line)
	l.mu.Unlock()
	for _, part := range parts {
		p := part.Params.(*scaleParams)
		if p.Fail {
			return errors.New("told to fail")
		}
		if l.most > 0 && len(parts) > l.most {
			return stages.ErrOutOfMemory
		}
		for i := range part.Env.Len() {
			x := p.By * first(part.Env.In("images", i))
			if p.By == l.askew && part.Env.Slot.Device().Class != "cpu" {
				x++
			}
			part.Env.Put("scores", i, stages.Scalar(x))
		}
	}
	return nil
}

const sharing = `
name: sharing
axes:
  by: [BY]
stages:
  images: {uses: lab/source}
  others: {uses: lab/source, with: {axis: other}}
  maps:   {uses: lab/shared, matrix: [by], in: {images: images}, with: {by: "${by}"}, when: [WHEN]}
  away:   {uses: lab/shared, in: {images: others}, with: {by: 9}}
  total:  {uses: lab/sum, in: {scores: maps}, over: all, missing: drop}
publish: [total]
`

// TestSharedRun holds which cells share a run, chunk by chunk: those that read the same outputs and lack the
// same items; and that results are what they are alone, when one of them fails too.
func TestSharedRun(t *testing.T) {
	l := newLab(t)
	l.items, l.chunk = []string{"a=1", "b=2", "c=3"}, 2
	run := func(by, when string) string {
		l.saw = nil
		r, err := l.run(strings.NewReplacer("BY", by, "WHEN", when).Replace(sharing))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(l.saw)
		return l.text(r, "total")
	}
	want := "by=2: 2 4 6\nby=3: 3 6 9\nby=5: 5 10 15\n"
	if got := run("2, 3, 5", ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	saw := []string{"1 of 2 3 5", "1 of 9", "2 of 2 3 5", "2 of 9"}
	if d := cmp.Diff(saw, l.saw); d != "" {
		t.Error(d)
	}
	l.items = append(l.items, "d=4")
	want = "by=2: 2 4 6 8\nby=3: 3 6 9 12\nby=5: 5 10 15 20\nby=6: 6 12 18 24\n"
	if got := run("2, 3, 4, 5, 6", `{if: {by: "4"}, with: {fail: true}}`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// The old cells lack one item, the new ones all. The fourth fails in its first chunk, alone too.
	saw = []string{"1 of 2 3 5", "1 of 9", "2 of 4", "2 of 4 6", "2 of 6", "2 of 6"}
	if d := cmp.Diff(saw, l.saw); d != "" {
		t.Error(d)
	}
}

// TestSharedRunOfSlowProgram checks that cells share a run also when the program of one is known later.
func TestSharedRunOfSlowProgram(t *testing.T) {
	for _, slow := range []float64{2, 3, 5} {
		l := newLab(t)
		l.items, l.chunk, l.slow = []string{"a=1"}, 2, slow
		l.mustRun(strings.NewReplacer("BY", "2, 3, 5", "WHEN", "").Replace(sharing))
		slices.Sort(l.saw)
		if d := cmp.Diff([]string{"1 of 2 3 5", "1 of 9"}, l.saw); d != "" {
			t.Errorf("the program of %g is slow: %s", slow, d)
		}
	}
}

// TestSharedRunTooLarge holds that cells which fail together and not alone go on alone.
func TestSharedRunTooLarge(t *testing.T) {
	l := newLab(t)
	l.items, l.chunk, l.most = []string{"a=1", "b=2", "c=3"}, 2, 2
	r := l.mustRun(strings.NewReplacer("BY", "2, 3, 5", "WHEN", "").Replace(sharing))
	if got, want := l.text(r, "total"), "by=2: 2 4 6\nby=3: 3 6 9\nby=5: 5 10 15\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	slices.Sort(l.saw)
	saw := []string{"1 of 2", "1 of 3", "1 of 5", "1 of 9", "2 of 2", "2 of 2 3 5", "2 of 3", "2 of 5",
		"2 of 9"}
	if d := cmp.Diff(saw, l.saw); d != "" {
		t.Error(d)
	}
}
