package publish

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestNotes reads from a folder what its README.md says of a run that failed and was narrowed.
func TestNotes(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	read := func() *Folder {
		t.Helper()
		v, err := ReadVersion(dir)
		if err != nil {
			t.Fatal(err)
		}
		f, err := v.Folder()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := read(); len(f.Notes) != 0 || f.Passages[0].Old {
		t.Errorf("of a run that finished, the notes are %q", f.Notes)
	}
	w := newWorld()
	w.methods = append(w.methods, "abs")
	w.failed["rise"] = true
	r := w.results()
	for i := range r.Cells {
		if r.Cells[i].Name == "auc[method=abs]" {
			r.Cells[i].Scores[0].Measure.Direction, r.Cells[i].Scores[0].Measure.Chance = stages.Higher, 0.1
		}
	}
	r.Narrowed = []string{"--limit 5", "method=<b>"}
	write(t, dir, r)
	f := read()
	want := []string{
		"> **Warning:** `auc[method=abs]` is 0.145, and guessing gives 0.1. ",
		"auc: method=abs 0.145",
		"> **Failed** (1 cell): `maps[method=rise]` (shown as an earlier run left it)",
		"> **Not run, because something it needs failed or the run was stopped** (3 cells): ",
		"> Nothing was removed. ",
		"> **Narrowed**, so this is not the whole experiment:\n\n- --limit 5\n- method=&lt;b>",
		"> Of an earlier run, because something failed in this one:\n\n- [",
	}
	if !slices.EqualFunc(f.Notes, want, strings.HasPrefix) {
		t.Errorf("the notes are\n%s\nnot\n%s", strings.Join(f.Notes, "\n"), strings.Join(want, "\n"))
	}
	if len(f.Passages) != 1 || !f.Passages[0].Old {
		t.Errorf("the answer of an earlier run isn't marked: %+v", f.Passages)
	}
}

// TestReadmeIsForPeople: what somebody writes into README.md is no claim, and gone after the next run;
// another text in folder.jsonl is one.
func TestReadmeIsForPeople(t *testing.T) {
	dir, want := fresh(t, newWorld().results())
	put(t, dir, "README.md", strings.Replace(want["README.md"], "**ig** ranks", "**abs** ranks", 1))
	v := write(t, dir, newWorld().results())
	if !v.Current() || !slices.Equal(v.Changed, []string{"README.md"}) {
		t.Errorf("%s, changed %v", v, v.Changed)
	}
	same(t, folder(t, dir), want)
	put(t, dir, folderFile, strings.Replace(want[folderFile], "**ig** ranks", "**abs** ranks", 1))
	v = write(t, dir, newWorld().results())
	if len(v.Of(Differs)) != 1 || !strings.Contains(folder(t, dir)["README.md"], "**abs** ranks") {
		t.Errorf("%s", v)
	}
}

// TestAnswerComesFirst: folder.jsonl has the texts in the order of README.md, so that a comparison of
// folders finds the answer of the first published stage.
func TestAnswerComesFirst(t *testing.T) {
	f := &Folder{Publish: []string{"b", "a"},
		Passages: []*Passage{{Cell: "a", Body: "A."}, {Cell: "b", Body: "B."}}}
	p := &publishedFolder{disk: &disk{about: readAbout(f.encode())}}
	if got := p.answer(); got != "B." {
		t.Errorf("the answer is %q", got)
	}
}

// TestTextsReadOtherwise: a folder with the text that a stage wrote is reproduced by the text that people
// read today, which it then has; a text of other results is a difference.
func TestTextsReadOtherwise(t *testing.T) {
	results := func(stored, shown string) *Results {
		r := newWorld().results()
		for i := range r.Cells {
			if len(r.Cells[i].Texts) > 0 {
				r.Cells[i].Texts = []Text{{Port: "answer", Markdown: shown, Stored: stored}}
			}
		}
		return r
	}
	const stored = "**ig** ranks first of 2, by 0.25."
	const shown = "No answer: too few. " + stored
	dir, _ := fresh(t, results("", stored))
	if v := write(t, dir, results(stored, shown)); !v.OK() {
		t.Errorf("the same result: %s", v)
	}
	v, err := ReadVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := v.Folder()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Passages) != 1 || f.Passages[0].Body != shown || f.Answer() != "No answer: too few." {
		t.Errorf("the folder has the text %q", f.Passages[0].Body)
	}
	if v := write(t, dir, results(stored, shown)); !v.OK() {
		t.Errorf("the same text: %s", v)
	}
	if v := write(t, dir, results("**lrp** ranks first.", "No answer: too few. **lrp** ranks "+
		"first.")); v.OK() {
		t.Errorf("another result is no difference: %s", v)
	}
}
