package publish

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// changedLines counts the lines that a diff of two folders shows, by file. It leaves out pictures.
func changedLines(was, is map[string]string) map[string]int {
	n := map[string]int{}
	count := func(a, b string) int {
		have := map[string]int{}
		for l := range strings.Lines(b) {
			have[l]++
		}
		lost := 0
		for l := range strings.Lines(a) {
			if have[l]--; have[l] < 0 {
				lost++
			}
		}
		return lost
	}
	for name := range is {
		if d := count(was[name], is[name]) + count(is[name], was[name]); d > 0 {
			n[name] = d
		}
	}
	return n
}

// One parameter of one method changes the lines of that method, and of what is made of all: definitions stand
// in cells/ alone, and a row changes when its value does.
func TestOneParameterChangesItsOwnLines(t *testing.T) {
	many := func() *world {
		w := newWorld()
		w.methods = strings.Split("a b c d e f g h ig j k l m random rise", " ")
		w.items = 24
		return w
	}
	dir, was := fresh(t, many().results())
	w := many()
	w.steps["ig"], w.shift["ig"] = 1, -0.1 // another definition, the same values
	if v := write(t, dir, w.results()); !v.OK() || len(v.Of(Rewritten)) == 0 {
		t.Errorf("%s", v)
	}
	got := changedLines(was, folder(t, dir))
	// ±1 of each cell whose definition moved: the method's own and two of all.
	want := map[string]int{"cells/maps.jsonl": 2, "cells/auc.jsonl": 2, "cells/leaderboard.jsonl": 2,
		"cells/sheet.jsonl": 2}
	for _, name := range slices.Sorted(keys(got, want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %d lines changed, want %d", name, got[name], want[name])
		}
	}

	w.shift["ig"] = -0.05 // other values, too
	dir, was = fresh(t, many().results())
	write(t, dir, w.results())
	got = changedLines(was, folder(t, dir))
	want["items/auc.csv"] = 2
	for _, name := range []string{"README.md", "tables/leaderboard.csv", "tables/leaderboard.tex"} {
		want[name] = got[name]
	}
	for _, name := range slices.Sorted(keys(got, want)) {
		if got[name] != want[name] {
			t.Errorf("with other values %s: %d lines changed, want %d", name, got[name], want[name])
		}
	}
	if got["tables/leaderboard.csv"] > 8 || got["tables/leaderboard.tex"] > 8 || got["README.md"] > 14 {
		t.Errorf("with other values: %v", got)
	}
}

func keys(maps ...map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, m := range maps {
			for k := range m {
				if !seen[k] && !yield(k) {
					return
				}
				seen[k] = true
			}
		}
	}
}

// Of two branches' lines about one cell, the run takes those that hold; where none does it can't be told what
// was current, and it's no difference.
func TestContested(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	one, two := newWorld(), newWorld()
	one.steps["ig"], two.steps["ig"] = 1, 2
	_, a := fresh(t, one.results())
	_, b := fresh(t, two.results())
	for name := range a {
		if strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".csv") ||
			strings.HasSuffix(name, ".md") {
			put(t, dir, name, union(t, "", b[name], a[name]))
		} else if !strings.HasSuffix(name, "/") {
			put(t, dir, name, b[name])
		}
	}
	v := write(t, dir, one.results())
	if !v.OK() || v.Reproduced.Scores != 3 {
		t.Errorf("%s", v)
	}
	same(t, folder(t, dir), a)

	// Lines of both, and all else as the other branch has it.
	for name := range b {
		if strings.HasSuffix(name, ".jsonl") {
			put(t, dir, name, union(t, "", b[name], a[name]))
		} else if !strings.HasSuffix(name, "/") {
			put(t, dir, name, b[name])
		}
	}
	if v := write(t, dir, one.results()); !v.OK() || v.Reproduced.Items != 10 {
		t.Errorf("%s", v)
	}
	same(t, folder(t, dir), a)
}

// README.md shows cells and rows as the experiment writes their ids; all other files are sorted, and stay as
// they are when it writes them in another order.
func TestShownOrder(t *testing.T) {
	results := func(ids ...string) *Results {
		r := &Results{Name: "order", Order: stages.Order{"layer": ids}, Publish: []string{"table", "best"}}
		table := stages.Table{Title: "Layers", Keys: []string{"layer", "part"},
			Numbers: []stages.Column{{Name: "score"}}}
		best := stages.Table{Title: "Best", Ranked: true, Keys: []string{"layer"},
			Numbers: []stages.Column{{Name: "score"}}}
		for _, id := range []string{"middle", "input", "final"} { // best first
			best.Rows = append(best.Rows,
				stages.Row{Keys: []string{id}, Numbers: []stages.Number{stages.Number(len(id))}})
		}
		for _, id := range ids {
			coord := []stages.Coord{{Axis: "layer", ID: id}}
			r.Cells = append(r.Cells, Cell{
				Name: "auc[layer=" + id + "]", Stage: "auc", Coord: coord, Definition: stages.Sum([]byte(id)),
				N:       1,
				Scores:  []Score{{"auc", stages.Measure{}, Values{{"a", float64(len(id))}}.items()}},
				Figures: []Figure{{"figure", "svg", "of " + id, []byte("<svg></svg>")}},
			})
			for _, part := range []string{"whole", "half"} { // no axis: as the stage has them
				table.Rows = append(table.Rows,
					stages.Row{Keys: []string{id, part}, Numbers: []stages.Number{stages.Number(len(id))}})
			}
		}
		r.Cells = append(r.Cells,
			Cell{Name: "table", Stage: "table", N: -1, Definition: stages.Sum([]byte(strings.Join(ids, ","))),
				Tables: []Table{{"table", table}}},
			Cell{Name: "best", Stage: "best", N: -1, Definition: stages.Sum([]byte(strings.Join(ids, ","))),
				Tables: []Table{{"table", best}}})
		return r
	}
	dir, was := fresh(t, results("input", "middle", "final"))
	places := func(text string, words ...string) {
		t.Helper()
		at := 0
		for _, w := range words {
			i := strings.Index(text[at:], w)
			if i < 0 {
				t.Fatalf("%q doesn't follow in\n%s", w, text)
			}
			at += i
		}
	}
	places(was["README.md"], "Layers", "| input | whole |", "| input | half |", "| middle | whole |",
		"| final | whole |",
		"Best", "| middle |", "| input |", "| final |", "of input", "of middle", "of final",
		"| auc[layer=input] ", "| auc[layer=middle] ", "| auc[layer=final] ")
	places(was["tables/table.csv"], "final,whole", "final,half", "input,whole", "middle,whole")
	places(was["tables/best.csv"], "middle", "input", "final")
	places(was["items/auc.csv"], "=final", "=input", "=middle")
	places(was["cells/auc.jsonl"], "=final", "=input", "=middle")

	if v := write(t, dir, results("final", "middle", "input")); !v.OK() {
		t.Errorf("%s", v)
	}
	got := folder(t, dir)
	places(got["README.md"], "Layers", "| final | whole |", "| middle | whole |", "| input | whole |", "Best",
		"| middle |", "| input |", "of final", "of middle", "of input", "| auc[layer=final] ")
	n := changedLines(was, got)
	delete(n, "README.md")
	if len(n) != 2 || n["cells/table.jsonl"] != 2 || n["cells/best.jsonl"] != 2 {
		t.Errorf("apart from README.md, another order changes %v", n)
	}
}

// A file in tables/ is ours if lines in cells/ speak of it, and nobody else's is.
func TestTablesThatAreOurs(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	put(t, dir, "tables/leaderboard.notes.csv", "method,note\nig,mine\n")
	w := newWorld()
	w.publish = nil
	write(t, dir, w.results())
	got := folder(t, dir)
	if got["tables/leaderboard.notes.csv"] == "" || got["tables/leaderboard.csv"] != "" {
		t.Errorf("the folder has %v", got)
	}
}
