package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// side scales items, and notes which cells run beside it.
func (l *lab) side() stages.Stage {
	return stages.New(stages.Def[scaleParams]{
		Name: "lab/side", Doc: "scaled items", Version: 1, Device: true, Together: "lab", Defaults: scaleParams{By: 2},
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(ctx context.Context, p scaleParams, e *stages.Env) error {
			line := fmt.Sprintf("%g×%d beside", p.By, e.Len())
			for _, b := range e.Beside {
				line += fmt.Sprintf(" %g", b.Params.(*scaleParams).By)
			}
			l.mu.Lock()
			l.saw = append(l.saw, line)
			l.mu.Unlock()
			if p.Fail {
				return errors.New("told to fail")
			}
			for i := range e.Len() {
				e.Put("scores", i, stages.Scalar(p.By*first(e.In("images", i))))
			}
			return nil
		},
	})
}

const beside = `
name: beside
axes:
  by: [BY]
stages:
  images: {uses: lab/source}
  others: {uses: lab/source, with: {axis: other}}
  maps:   {uses: lab/side, matrix: [by], in: {images: images}, with: {by: "${by}"}, when: [WHEN]}
  away:   {uses: lab/side, in: {images: others}, with: {by: 9}}
  total:  {uses: lab/sum, in: {scores: maps}, over: all, missing: drop}
publish: [total]
`

// TestTogether holds which cells see each other, chunk by chunk: those that read the
// same outputs and don't know the items yet; and that results are what they are
// alone, when one of them fails too.
func TestTogether(t *testing.T) {
	l := newLab(t)
	l.items, l.chunk = []string{"a=1", "b=2", "c=3"}, 2
	run := func(by, when string) string {
		l.saw = nil
		r, err := l.run(strings.NewReplacer("BY", by, "WHEN", when).Replace(beside))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(l.saw)
		return l.text(r, "total")
	}
	if got, want := run("2, 3, 5", ""), "by=2: 2 4 6\nby=3: 3 6 9\nby=5: 5 10 15\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := []string{"2×1 beside 3 5", "2×2 beside 3 5", "3×1 beside 5", "3×2 beside 5", "5×1 beside", "5×2 beside", "9×1 beside", "9×2 beside"}
	if d := cmp.Diff(want, l.saw); d != "" {
		t.Error(d)
	}
	l.items = append(l.items, "d=4")
	run("2, 3, 4, 5, 6", `{if: {by: "4"}, with: {fail: true}}`)
	// What is new for the old cells is one item, the new ones need all. The fourth
	// fails at its first chunk, which the old ones know.
	want = []string{"2×1 beside 3 5 6", "3×1 beside 5 6", "4×2 beside 6", "5×1 beside 6", "6×2 beside", "6×2 beside", "9×1 beside"}
	if d := cmp.Diff(want, l.saw); d != "" {
		t.Error(d)
	}
}
