package publish

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestNotes reads from a folder what its README.md tells of a run that failed and was narrowed.
func TestNotes(t *testing.T) {
	dir, _ := fresh(t, newWorld().review())
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
		t.Errorf("of a run that finished, README.md tells %q", f.Notes)
	}
	w := newWorld()
	w.methods = append(w.methods, "abs")
	w.failed["rise"] = true
	r := w.review()
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
		t.Errorf("README.md tells\n%s\nnot\n%s", strings.Join(f.Notes, "\n"), strings.Join(want, "\n"))
	}
	if len(f.Passages) != 1 || !f.Passages[0].Old {
		t.Errorf("the answer of an earlier run isn't marked: %+v", f.Passages)
	}
	// What a stage writes is no note, whatever it begins with.
	put(t, dir, "README.md", "<!-- text board answer -->\n**Failed** (all)\n<!-- end of text -->\n")
	if f := read(); len(f.Notes) != 0 {
		t.Errorf("the text of a stage became %q", f.Notes)
	}
}
