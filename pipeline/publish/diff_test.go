package publish

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now\n%s\nwant\n%s", name, got, want)
	}
}

func diffFolders(a, b string) (*Difference, error) {
	x, err := ReadVersion(a)
	if err != nil {
		return nil, err
	}
	y, err := ReadVersion(b)
	if err != nil {
		return nil, err
	}
	return Diff(x, y)
}

func diff(t *testing.T, a, b string) *Difference {
	t.Helper()
	d, err := diffFolders(a, b)
	if err != nil {
		t.Fatal(err)
	}
	d.A, d.B = "main", "branch"
	return d
}

func TestDiffOfEquals(t *testing.T) {
	a, _ := fresh(t, newWorld().results())
	b, _ := fresh(t, newWorld().results())
	d := diff(t, a, b)
	if !d.Empty() || !d.Within() || d.String() != "no differences: 3 scores compared" {
		t.Errorf("%+v\n%s", d, d)
	}
}

// The folder made anew on another machine.
func TestDiffWithinTolerance(t *testing.T) {
	w := newWorld()
	w.shift["ig"] = 5e-5
	a, _ := fresh(t, newWorld().results())
	b, _ := fresh(t, w.results())
	d := diff(t, a, b)
	if d.Empty() || !d.Within() || len(d.Scores) != 1 || d.Scores[0].Cell != "auc[method=ig]" ||
		d.Scores[0].Unreproduced {
		t.Errorf("%s", d)
	}
	w.shift["ig"] = 1.1e-4
	c, _ := fresh(t, w.results())
	if d := diff(t, a, c); d.Within() || !d.Scores[0].Unreproduced {
		t.Errorf("%s", d)
	}
	// A mean within the tolerance doesn't hide an item outside of it.
	r := newWorld().results()
	var items []float64
	for i := range r.Cells {
		if r.Cells[i].Name == "auc[method=rise]" {
			items = r.Cells[i].Scores[0].Items.Values
			items[0] += 0.01
			items[1] -= 0.01
		}
	}
	e, _ := fresh(t, r)
	if d := diff(t, a, e); d.Within() || len(d.Scores) != 1 || !(math.Abs(d.Scores[0].Largest-0.01) <= 1e-8) {
		t.Errorf("%s", d)
	}
	// Unless items have a tolerance of their own, here and in the folder's claims.
	jumps := func(r *Results) *Results {
		for i := range r.Cells {
			for k := range r.Cells[i].Scores {
				r.Cells[i].Scores[k].Measure.ItemTolerance = 0.02
			}
		}
		return r
	}
	a, _ = fresh(t, jumps(newWorld().results()))
	e, _ = fresh(t, jumps(r))
	if d := diff(t, a, e); !d.Within() || len(d.Scores) != 1 {
		t.Errorf("%s", d)
	}
	if v := write(t, a, r); !v.OK() {
		t.Errorf("%s", v)
	}
	items[0] += 0.02
	items[1] -= 0.02
	if v := write(t, a, r); v.OK() {
		t.Errorf("%s", v)
	}
}

func TestDiffInWords(t *testing.T) {
	w := newWorld()
	w.methods = []string{"abs", "ig", "rise"}
	w.steps["ig"] = 2
	w.shift["rise"] = 1e-3
	w.nan = "rise"
	a, _ := fresh(t, newWorld().results())
	r := w.results()
	r.Experiment = []byte("name: small\nseed: 8\n")
	b, _ := fresh(t, r)
	d := diff(t, a, b)
	golden(t, "diff.txt", d.String()+"\n")
	golden(t, "diff.md", d.Markdown())
	data, err := json.MarshalIndent(d.Data(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.json", string(data)+"\n")
}

func TestReadme(t *testing.T) {
	w := newWorld()
	_, files := fresh(t, w.results())
	golden(t, "README.md", files["README.md"])

	r := w.results()
	r.Narrowed = []string{"--limit 5"}
	_, files = fresh(t, r)
	s := "**Narrowed**, so this is not the whole experiment:\n\n- --limit 5\n"
	if !strings.Contains(files["README.md"], s) {
		t.Errorf("README.md has no %q:\n%s", s, files["README.md"])
	}
}

func TestDiffRefuses(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	for _, bad := range []string{t.TempDir(), filepath.Join(dir, "none"), filepath.Join(dir, "README.md")} {
		if _, err := diffFolders(dir, bad); err == nil {
			t.Errorf("Diff takes %s", bad)
		}
		if _, err := diffFolders(bad, dir); err == nil {
			t.Errorf("Diff takes %s", bad)
		}
	}
}

// Without the scores of items, means are compared.
func TestDiffOfMeans(t *testing.T) {
	w := newWorld()
	a, _ := fresh(t, w.results())
	w.shift["ig"] = 0.5
	b, _ := fresh(t, w.results())
	if err := os.Remove(filepath.Join(a, "items", "auc.csv")); err != nil {
		t.Fatal(err)
	}
	d := diff(t, a, b)
	if len(d.Scores) == 0 || d.Scores[0].Paired != 0 || !(math.Abs(d.Scores[0].Change-0.5) <= 1e-9) {
		t.Errorf("%s", d)
	}
}

// Tables without a column that ranks have no ranks, and the place in one that is ordered by mean ranks
// is that of the numbers.
func TestRankings(t *testing.T) {
	ranks := func(text string) string {
		rows := readTable([]byte(text))
		r := rankingOf(rows, rows)
		if r == nil {
			return "none"
		}
		var list []string
		for _, row := range r.rows() {
			list = append(list, row+" "+r.a[row].rank)
		}
		return strings.Join(list, "; ")
	}
	for _, c := range [][2]string{
		{"method,against,wins\np,q,1\nq,p,2\n", "none"},
		{"method,rank,wins\np,2,1\nq,1,2\nr,,0\n", "q 1; p 2"},
		{"case,method,mean,rank\nx,p,3,2\nx,q,3,1\ny,p,2,1\n", "x, q 1; x, p 2; y, p 1"},
		{"case,method,mean rank,first\nx,p,2.5,0\nx,q,1,1\nx,r,2.5,0\ny,p,1.5,1\n",
			"x, q 1; x, p 2; x, r 2; y, p 1"},
	} {
		if got := ranks(c[0]); got != c[1] {
			t.Errorf("%q has ranks %s, want %s", c[0], got, c[1])
		}
	}
}

// A difference is written any number of times in any order: its lists, which may have room for more, stay.
func TestDiffIsWrittenAgain(t *testing.T) {
	row := func(text string, before, now float64) RankChange {
		key := TableKey{"board", []string{"method"}, []string{text}}
		return RankChange{[]string{"board"}, key, before, now}
	}
	maps := []string{"maps"}
	d := &Difference{Redefined: map[string]int{}, Compared: 1,
		Params: append(make([]ParamChange, 0, 8), ParamChange{"maps.steps", "1", "2", maps},
			ParamChange{"maps.ends", "1", "3", maps}),
		Ranks: append(make([]RankChange, 0, 8), row("p", 1, 2), row("q", 2, 1))}
	text, md := d.String(), d.Markdown()
	for range 2 {
		if d.Markdown() != md || d.String() != text {
			t.Fatalf("written again it is\n%s\n%s", d.Markdown(), d)
		}
	}
	for _, row := range []string{"| maps.steps |", "| maps.ends |", "| board | p |", "| board | q |",
		"| parameter |", "| table |"} {
		if strings.Count(md, row) != 1 {
			t.Errorf("%q isn't once in\n%s", row, md)
		}
	}
}

// The first sentence says whose scores changed, by how many intervals, and which ranks stayed.
func TestDiffInOneSentence(t *testing.T) {
	ten := strings.Split("a b c d e f g h i j", " ")
	of := func(methods []string, change func(w *world)) *world {
		w := newWorld()
		w.methods, w.nan, w.items = methods, "", 24
		for i, m := range methods {
			w.shift[m] = float64(i) / 4
		}
		change(w)
		return w
	}
	explained := func(chance string) string {
		return " (the paired 95 % interval excludes 0; by chance " + chance + " would); "
	}
	for _, c := range []struct {
		want   string
		change func(w *world)
		items  int // 0: 24
	}{
		{"c is worse in its only score, better in none (the paired 95 % interval excludes 0; " +
			"of so few images it is too short); no other method's scores changed; " +
			"in leaderboard, ranks 1–2 of 10 are unchanged",
			func(w *world) { w.steps["c"] = 3 }, 23},
		{"c changed in its only score, of fewer than 6 images, which confirms nothing; " +
			"no other method's scores changed; in leaderboard, ranks 1–2 of 10 are unchanged",
			func(w *world) { w.steps["c"] = 3 }, 5},
		{"c is worse in its only score, better in none" + explained("fewer than 1 of 1") +
			"no other method's scores changed; in leaderboard, ranks 1–2 of 10 are unchanged",
			func(w *world) { w.steps["c"] = 3 }, 0},
		{"c is worse in its only score, better in none; e is better in its only score, worse in none" +
			explained("fewer than 1 of 2") +
			"no other method's scores changed beyond the tolerance; " +
			"in leaderboard, ranks 1–2 of 10 are unchanged",
			func(w *world) {
				w.steps["c"], w.steps["e"] = 3, 1
				w.shift["e"] -= 0.2
				w.shift["a"] += 1e-6
			}, 0},
		{"8 of 10 scores got worse, none got better" + explained("fewer than 1 of 8") +
			"no rank in leaderboard changed",
			func(w *world) {
				for _, m := range ten[2:] {
					w.steps[m] = 1
				}
			}, 0},
		{"no score changed beyond the tolerance; no rank in leaderboard changed",
			func(w *world) { w.shift["a"] += 1e-6 }, 0},
		{"1 score with the same definition as before: outside the tolerance; " +
			"a is worse in its only score, better in none" + explained("fewer than 1 of 1") +
			"no other method's scores changed; " +
			"first in leaderboard is b, was a",
			func(w *world) { w.shift["a"] = 0.3 }, 0},
		{"no score changed; no rank in leaderboard changed",
			func(w *world) { w.steps["c"], w.shift["c"] = 1, w.shift["c"]-0.1 }, 0},
	} {
		was, is := of(ten, func(*world) {}), of(ten, c.change)
		if c.items > 0 {
			was.items, is.items = c.items, c.items
		}
		a, _ := fresh(t, was.results())
		b, _ := fresh(t, is.results())
		if got := diff(t, a, b).Summary(); got != c.want {
			t.Errorf("the summary is\n%s\nwant\n%s", got, c.want)
		}
	}
}

// Verdicts are of intervals alone, and none is of the same computation within its tolerance.
func TestVerdicts(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		want   string
		change ScoreChange
	}{
		{better, ScoreChange{B: Mean{Direction: "higher"}, Paired: 6, Low: 1, High: 2, Redefined: true}},
		{worse, ScoreChange{B: Mean{Direction: "lower"}, Paired: 6, Low: 1, High: 2, Redefined: true}},
		{better, ScoreChange{B: Mean{Direction: "lower"}, Paired: 6, Low: -2, High: -1, Unreproduced: true}},
		{changed, ScoreChange{Paired: 6, Low: 1, High: 2, Redefined: true}},
		{uncertain, ScoreChange{B: Mean{Direction: "lower"}, Paired: 6, Low: 0, High: 1, Redefined: true}},
		{untested, ScoreChange{B: Mean{Direction: "lower"}, Paired: 1, Low: 1, High: 1, Redefined: true}},
		{untested, ScoreChange{B: Mean{Direction: "lower"}, Paired: 9, Low: nan, High: nan, Redefined: true}},
		{tooFew, ScoreChange{B: Mean{Direction: "lower"}, Paired: 5, Low: 1, High: 2, Redefined: true}},
		{asBefore, ScoreChange{B: Mean{Direction: "lower"}, Paired: 9, Low: 1, High: 2}},
	} {
		if got := c.change.Verdict(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.change, got, c.want)
		}
	}
}

func TestSharedPlace(t *testing.T) {
	for want, cells := range map[string][]string{
		"method=rise":            {"maps[method=rise,model=vgg]", "maps[method=rise,model=vit]"},
		"":                       {"maps[method=rise,model=vgg]", "maps[method=ig,model=vit]", "maps"},
		"method=rise, model=vgg": {"maps[method=rise,model=vgg]", "maps[method=rise,model=vgg,run=2]"},
	} {
		if got := sharedPlace(cells); got != want {
			t.Errorf("%q share %q, want %q", cells, got, want)
		}
	}
}
