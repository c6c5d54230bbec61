package publish

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// Without a published text the answer is read off the first table, if that has one score and one axis whose
// places compete. Equal scores are a tie.
func TestAnswerOfATable(t *testing.T) {
	const shown = "Shown: the figure sheet, and the table leaderboard. No claim about what they show " +
		"is tested."
	mean := stages.Column{Name: "mean", Direction: stages.Higher, Digits: 2}
	n := stages.Column{Name: "n"}
	rows := func(keys string, numbers ...stages.Number) (list []stages.Row) {
		for i, k := range strings.Fields(keys) {
			list = append(list,
				stages.Row{Keys: strings.Split(k, "/"), Numbers: []stages.Number{numbers[i], numbers[i]}})
		}
		return list
	}
	for _, tc := range []struct {
		name  string
		table stages.Table
		want  string
	}{
		{"an order",
			stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{mean, n},
				Rows: rows("a b c d", .1, .4, .2, .3)},
			"By mean (higher is better), **b** (0.40) comes first of 4, then **d** (0.30) and **c** (0.20)."},
		{"two",
			stages.Table{Keys: []string{"method"},
				Numbers: []stages.Column{{Name: "mean", Direction: stages.Lower, Digits: 2}, n},
				Rows:    rows("a b", .1, .4)},
			"By mean (lower is better), **a** (0.10) comes first of 2, then **b** (0.40)."},
		{"two winners",
			stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{mean, n},
				Rows: rows("a b c d", .4, .1, .4, .3)},
			"By mean (higher is better), **a** and **c** tie first of 4 (0.40), then **d** (0.30)."},
		{"three winners",
			stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{mean, n},
				Rows: rows("a b c d", .4, .4, .4, .3)},
			"By mean (higher is better), **a**, **b** and **c** tie first of 4 (0.40)."},
		{"no winner",
			stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{mean, n},
				Rows: rows("a b c", .4, .4, .4)},
			"By mean (higher is better), all 3 tie at 0.40."},
		{"two scores",
			stages.Table{Keys: []string{"method"},
				Numbers: []stages.Column{mean, {Name: "vgg", Direction: stages.Higher}},
				Rows:    rows("a b", .1, .4)}, shown},
		{"two axes",
			stages.Table{Keys: []string{"method", "model"}, Numbers: []stages.Column{mean, n},
				Rows: rows("a/v b/v", .1, .4)}, shown},
		{"one place",
			stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{mean, n}, Rows: rows("a", .1)},
			shown},
	} {
		r := newWorld().results()
		for i := range r.Cells {
			r.Cells[i].Texts = nil
			if r.Cells[i].Tables != nil {
				r.Cells[i].Tables = []Table{{"table", tc.table}}
			}
		}
		_, files := fresh(t, r)
		_, got, _ := strings.Cut(files["README.md"], "\n\n")
		got, _, _ = strings.Cut(got, "\n\n")
		if got != tc.want {
			t.Errorf("%s: the answer is %q, want %q", tc.name, got, tc.want)
		}
	}
}

// answer returns the answer of a folder that is made of a review.
func answer(t *testing.T, r *Results) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "small"), r).Answer
}

// The first sentence of the answer is told as plain text.
func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"**ig** ranks first of 3 (mean 0.27). It leads **b** by 0.1.\n": "ig ranks first of 3 " +
			"(mean 0.27).",
		"By mean, **a\\_b** (0.4) comes first of 2, then **c** (0.3).\n\nMore.\n": "By mean, a_b (0.4) " +
			"comes first of 2, then c (0.3).",
		"All 2 come out equal\nin one case": "All 2 come out equal " +
			"in one case",
		"**a** wins. **b** loses.\n":                                              "a wins.",
		"Only \x1b[1m\u202ea\x07 competes.\n":                                     "Only [1ma competes.",
		"## board\n\nSome text.\n":                                                "",
		"> **Failed** (1 cell): x\n":                                              "",
		"*Of an earlier run, this one didn't finish it:*\n\n**a** ranks first.\n": "",
		"": "",
	} {
		f := &Folder{Passages: []*Passage{{Cell: "board", Port: "answer", Body: text}}}
		if got := f.Answer(); got != want {
			t.Errorf("of %q: %q, want %q", text, got, want)
		}
		f.Passages[0].Old = true
		if got := f.Answer(); got != "" {
			t.Errorf("of %q from an earlier run: %q", text, got)
		}
	}
	if got, want := answer(t, newWorld().results()), "ig ranks first of 3 (mean 0.270)."; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
}

// A README without an answer begins with a sentence on what it shows.
func TestOpening(t *testing.T) {
	for _, c := range []struct {
		f    Folder
		want string
	}{
		{Folder{}, ""},
		{Folder{Pictures: []*Picture{{Stage: "maps"}, {Stage: "maps"}}},
			"Shown: the figure maps. No claim about what they show is tested."},
		{Folder{Pictures: []*Picture{{Stage: "maps"}, {Stage: "parts"}}, Sheets: []*Sheet{{Stage: "scores"}}},
			"Shown: the figures maps and parts, and the table scores. No claim about what they show is " +
				"tested."},
	} {
		if got := c.f.Opening(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
