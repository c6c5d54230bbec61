package publish

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestChance checks that README.md compares scores with guessing after the answer, and begins with a
// warning about scores that are hardly better. The answer that a run prints has the warning before it.
func TestChance(t *testing.T) {
	r := newWorld().results()
	add := func(id string, right ...float64) {
		var values Values
		for i, x := range right {
			values = append(values, Value{string(rune('a' + i)), x})
		}
		r.Cells = append(r.Cells, Cell{
			Name: "accuracy[model=" + id + "]", Stage: "accuracy",
			Coord: []stages.Coord{{Axis: "model", ID: id}}, N: len(right), Definition: stages.Sum([]byte(id)),
			Scores: []Score{{"scores", stages.Measure{Direction: stages.Higher, Chance: 0.25},
				values.items()}},
		})
	}
	r.Order = stages.Order{"model": {"good", "bad"}}
	add("good", 1, 1, 1, 0)
	_, files := fresh(t, r)
	want := "<!-- end of text -->\n\naccuracy: model=good 0.75 over 4 items; guessing gives 0.25.\n\n## "
	if text := files["README.md"]; !strings.Contains(text, want) || strings.Contains(text, "Warning") {
		t.Errorf("README.md is\n%s\nwithout %s", clip(text), want)
	}
	if got, want := answer(t, r), "ig ranks first of 3 (mean 0.270)."; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	add("bad", 0, 0, 0, 1)
	_, files = fresh(t, r)
	want = "\n\n> **Warning:** `accuracy[model=bad]` is 0.25, and guessing gives 0.25. What follows says " +
		"little.\n\n<!-- text leaderboard"
	const guesses = "<!-- end of text -->\n\naccuracy: model=good 0.75, model=bad 0.25 over"
	if text := files["README.md"]; !strings.Contains(text, want) || !strings.Contains(text, guesses) ||
		strings.Count(text, "Warning") != 1 {
		t.Errorf("README.md is\n%s\nwithout %s", clip(text), want)
	}
	if got, want := answer(t,
		r), "Warning: accuracy[model=bad] is 0.25, and guessing gives 0.25. What follows says little. ig "+
		"ranks first of 3 (mean 0.270)."; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	for i := range listedGuesses + 3 {
		add("worse-"+string(rune('a'+i)), 0, 0, 0, 1)
	}
	if got, want := answer(t,
		r), " What follows says little. ig ranks first of 3 (mean 0.270)."; !strings.HasSuffix(got, want) ||
		strings.Count(got, "Warning") != 1 {
		t.Errorf("the answer is %q, which should have one warning and end with %q", got, want)
	}
}

func TestHardlyBetter(t *testing.T) {
	for _, c := range []struct {
		share, chance float64
		want          bool
	}{{0.49, 0.25, true}, {0.5, 0.25, false}, {0.19, 0.1, true}, {0.2, 0.1, false}, {0.74, 0.5, true},
		{0.75, 0.5, false}, {0.86, 0.5, false}, {0.5, 0.5, true}} {
		if got := hardlyBetter(c.share, c.chance); got != c.want {
			t.Errorf("%g where guessing gives %g: %v", c.share, c.chance, got)
		}
	}
}
