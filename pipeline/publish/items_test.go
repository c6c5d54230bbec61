package publish

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestItemValues(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1.0 / 3: "0.333333", -2e9 / 3: "-666667000",
		1e-9: "1e-09", math.Inf(-1): "-Inf", 0.25: "0.25"} {
		if got := formatItem(x); got != want {
			t.Errorf("%g is written as %s, want %s", x, got, want)
		}
	}
	if s := formatItem(math.NaN()); s != undefinedItem {
		t.Errorf("undefined is written as %q", s)
	}
	for _, tc := range []struct {
		published      string
		now, tolerance float64
		ok             bool
	}{
		{"0.333333", 1.0 / 3, 0, true}, {"0.333333", 0.3333334999, 0, true}, {"0.333333", 0.333334, 0, false},
		// On either side of where six digits round, nine are next to each other.
		{"0.333333", 0.33333351, 1e-7, true}, {"0.333333", 0.33333371, 1e-7, false},
		{"0.3333", 0.3334, 1e-4, true},
		{"undefined", math.NaN(), 0, true}, {"undefined", 0, 9, false}, {"0", math.NaN(), 9, false},
		{"+Inf", math.Inf(1), 0, true}, {"+Inf", 1, 9, false},
	} {
		x, _ := parseItem(tc.published)
		if _, ok := within(x, tc.now, tc.tolerance, itemDigits); ok != tc.ok {
			t.Errorf("%s and %.9f, within %g: %v", tc.published, tc.now, tc.tolerance, ok)
		}
	}
	for _, s := range []string{"", "NaN", "zero"} {
		if _, ok := parseItem(s); ok {
			t.Errorf("%q is read as a score", s)
		}
	}
}

// A line a cell and a column an item; cells with other items have a file of their own.
func TestItemFiles(t *testing.T) {
	score := func(values ...Value) []Score { return []Score{{"s", stages.Measure{}, Values(values).items()}} }
	cell := func(id string, scores []Score) Cell {
		return Cell{Name: "s[data=" + id + "]", Stage: "s", Coord: []stages.Coord{{Axis: "data", ID: id}},
			Definition: stages.Sum([]byte(id)), N: 2, Scores: scores}
	}
	r := &Results{Name: "x", Cells: []Cell{
		cell("x", score(Value{"b", 1.0 / 3}, Value{"a", math.NaN()})),
		cell("y", score(Value{"other", 2})),
		cell("z", score(Value{"a", -1e-9}, Value{"b", 0})),
	}}
	dir, got := fresh(t, r)
	want := map[string]string{
		"items/s.csv": "cell/item,a,b\ns[data=x],undefined,0.333333\ns[data=z],-1e-09,0\n",
		"items/s@" + itemsDigest([]string{"other"}) + ".csv": "cell/item,other\ns[data=y],2\n",
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is\n%swant\n%s", name, got[name], text)
		}
	}
	if v := write(t, dir, r); !v.Current() || v.Reproduced.Items != 5 || len(v.Changed) > 0 {
		t.Errorf("again: %s, changed %v", v, v.Changed)
	}
	// The cells' items are the same now: one file is left.
	r.Cells[1].Scores = score(Value{"a", 5}, Value{"b", 6})
	r.Cells[1].Definition = stages.Sum([]byte("new"))
	write(t, dir, r)
	_, want = fresh(t, r)
	same(t, folder(t, dir), want)
	if x := want["items/s.csv"]; !strings.Contains(x, "s[data=y],5,6\n") {
		t.Errorf("items/s.csv is\n%s", x)
	}
	// An item too many under a valid definition is noticed.
	put(t, dir, "items/s.csv",
		"cell/item,a,b,c\ns[data=x],undefined,0.333333,1\ns[data=y],5,6,undefined\ns[data=z],-1e-09,0,\n")
	v := write(t, dir, r)
	if len(v.Of(Differs)) != 2 || v.Of(Differs)[0].Column != "items" || v.Of(Differs)[0].Cell != "s[data=x]" {
		t.Errorf("an item too many: %s", v)
	}
}

// scoresResults has so many items in each of several scores.
func scoresResults(items map[string]int) *Results {
	r := &Results{Name: "big", Command: "runexp run experiments/big.yaml --set a=1"}
	for _, stage := range slices.Sorted(maps.Keys(items)) {
		for _, m := range []string{"a", "b"} {
			c := Cell{Name: stage + "[m=" + m + "]", Stage: stage, Coord: []stages.Coord{{Axis: "m", ID: m}},
				Definition: stages.Sum(fmt.Append(nil, stage, m, items[stage])), N: items[stage]}
			values := make(Values, items[stage])
			for i := range values {
				values[i] = Value{fmt.Sprintf("img-%06d", i), float64(i) / 7}
			}
			c.Scores = []Score{{stage, stages.Measure{}, values.items()}}
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

// The folder has one budget. The largest files of items go first, and README.md says which and how to get
// them.
func TestBudget(t *testing.T) {
	size := func(files map[string]string) (n int) {
		for _, s := range files {
			n += len(s)
		}
		return n
	}
	sizes := map[string]int{"small": 10, "medium": 25_000, "large": 60_000, "huge": 70_000,
		"endless": 200_000}
	dir, got := fresh(t, scoresResults(sizes))
	for name, there := range map[string]bool{"small": true, "medium": true, "large": false, "huge": false,
		"endless": false} {
		if _, ok := got["items/"+name+".csv"]; ok != there {
			t.Errorf("items of %s in the folder: %v", name, ok)
		}
	}
	if n := size(got); n > budget || n < budget/4 {
		t.Errorf("the folder has %d bytes of %d", n, budget)
	}
	for _, s := range []string{"`endless`, `huge`, `large`.",
		"    runexp get experiments/big.yaml --set a=1 'endless[m=a]' -o DIR\n", "below 2 MB"} {
		if !strings.Contains(got["README.md"], s) {
			t.Errorf("README.md doesn't say %q:\n%s", s, got["README.md"])
		}
	}
	if v := write(t, dir, scoresResults(sizes)); !v.Current() || len(v.Changed) > 0 || len(v.Warnings) > 0 {
		t.Errorf("again: %s, changed %v, %v", v, v.Changed, v.Warnings)
	}
	// Where there's room again, it's back; and what has none any more is gone.
	sizes["medium"], sizes["large"] = 65_000, 35_000
	v := write(t, dir, scoresResults(sizes))
	got = folder(t, dir)
	if got["items/large.csv"] == "" || got["items/medium.csv"] != "" ||
		!strings.Contains(got["README.md"], "`endless`, `huge`, `medium`.") {
		t.Errorf("then %s:\n%s", v, got["README.md"])
	}
	same(t, got, func() map[string]string { _, want := fresh(t, scoresResults(sizes)); return want }())
}

// Nothing but the folder's own size decides: 200 images × 14 methods × 5 nets fit.
func TestManyImagesFit(t *testing.T) {
	r := &Results{Name: "x"}
	for _, score := range []string{"auc", "mas", "mass", "rise"} {
		for method := range 14 {
			for net := range 5 {
				c := Cell{Name: fmt.Sprintf("%s[method=method-%02d,model=net-%d]", score, method, net),
					Stage: score, Definition: stages.Sum(fmt.Append(nil, score, method, net)), N: 200}
				values := make(Values, 200)
				for i := range values {
					values[i] = Value{fmt.Sprintf("n01440764/ILSVRC2012_val_%08d", i),
						math.Sqrt(float64(i+method)) / 15}
				}
				c.Scores = []Score{{score, stages.Measure{}, values.items()}}
				r.Cells = append(r.Cells, c)
			}
		}
	}
	dir, got := fresh(t, r)
	n := 0
	for _, s := range got {
		n += len(s)
	}
	t.Logf("%d bytes", n)
	if len(got["items/auc.csv"]) == 0 || n > 700_000 {
		t.Errorf("the folder has %d bytes, items/auc.csv %d", n, len(got["items/auc.csv"]))
	}
	if v, err := Verify(dir, r); err != nil || !v.Current() || v.Reproduced.Items != 4*14*5*200 {
		t.Errorf("%s, %v", v, err)
	}
}

// Folders that differ in what they leave in the store don't differ in what they say.
func TestDiffWithoutItems(t *testing.T) {
	a, _ := fresh(t, newWorld().results())
	w := newWorld()
	w.shift["ig"] = 3e-5
	b, _ := fresh(t, w.results())
	if err := os.Remove(b + "/items/auc.csv"); err != nil {
		t.Fatal(err)
	}
	d, err := diffFolders(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Within() || len(d.Scores) != 1 || d.Scores[0].Paired != 0 {
		t.Errorf("%s", d)
	}
}

// A folder as it was written before: a definition on every row, text and figure, a line an item, and texts in
// README.md alone. It's read, or rewritten once, and then like any other.
func TestOldFolder(t *testing.T) {
	dir, want := fresh(t, newWorld().results())
	if err := os.Remove(filepath.Join(dir, folderFile)); err != nil {
		t.Fatal(err)
	}
	for _, c := range newWorld().results().Cells {
		d := c.Definition.Short()
		switch c.Name {
		case "leaderboard":
			old := strings.ReplaceAll(want["tables/leaderboard.csv"], "\n", ","+d+"\n")
			old = strings.Replace(old, ","+d, ",definition", 1)
			put(t, dir, "tables/leaderboard.csv", old)
			put(t, dir, "README.md", strings.Replace(want["README.md"], "answer -->", "answer "+d+" -->", 1))
			put(t, dir, "cells/leaderboard.jsonl", `{"cell":"leaderboard","definition":"`+d+`"}`+"\n")
		case "sheet":
			for name, text := range want {
				if strings.HasSuffix(name, ".svg") {
					// Bytes that a comment of JSON ends with: "}" and its frame.
					put(t, dir, name, strings.Replace(text, "} -->", `,"definition":"`+d+`"} -->`, 1))
				}
			}
		}
	}
	items := "method,item,value,definition\nig,img-00,0.25,0123456789abcdef\n"
	put(t, dir, "items/auc.csv", items)
	v := write(t, dir, newWorld().results())
	if !v.OK() || v.Reproduced.Scores != 3 || v.Reproduced.Rows != 3 || v.Reproduced.Texts != 1 ||
		v.Reproduced.Figures != 2 {
		t.Errorf("%s", v)
	}
	got := folder(t, dir)
	for name := range got { // a figure stays as it is, mark included
		if strings.HasSuffix(name, ".svg") {
			if !bytes.Contains([]byte(got[name]), []byte("definition")) {
				t.Errorf("%s was rewritten", name)
			}
			got[name] = want[name]
		}
	}
	same(t, got, want)
	if v := write(t, dir, newWorld().results()); !v.Current() || len(v.Changed) > 0 {
		t.Errorf("again: %s, changed %v", v, v.Changed)
	}
}
