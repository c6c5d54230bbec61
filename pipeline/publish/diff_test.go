package publish

import (
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

func TestPlaces(t *testing.T) {
	a := readTable([]byte("case,method,score\nx,p,1\nx,q,2\ny,p,3\n"))
	b := readTable([]byte("case,method,score\nx,r,0\nx,q,2\nx,p,2\ny,p,3\n"))
	x, y := places(a, b)
	if x["x, p"] != "1" || y["x, p"] != "2" || x["x, q"] != "2" || y["x, q"] != "1" ||
		x["y, p"] != y["y, p"] || len(x) != 3 || len(y) != 3 {
		t.Errorf("places %v and %v", x, y)
	}
}
