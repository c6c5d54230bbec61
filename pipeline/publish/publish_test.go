package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runexp/runexp/stages"
)

// Every way from one state of a folder to the next.
func TestTransitions(t *testing.T) {
	type is struct{ reproduced, added, rewritten, removed, differs, kept bool }
	for _, test := range []struct {
		name   string
		before func(*world)
		now    func(*world)
		want   is
		fresh  func(*world) // the world whose fresh folder it becomes; nil: before's
	}{
		{
			name: "nothing changed",
			now:  func(*world) {},
			want: is{reproduced: true},
		}, {
			name: "another processor",
			now: func(w *world) {
				w.shift["ig"], w.shift["rise"], w.grey, w.madeBy = 3e-7, -4e-5, 1, "cuda"
			},
			want: is{reproduced: true},
		}, {
			name: "outside the tolerance",
			now:  func(w *world) { w.shift["ig"] = 0.01 },
			want: is{reproduced: true, differs: true},
		}, {
			name: "a figure outside its tolerance",
			now:  func(w *world) { w.grey = 40 },
			want: is{reproduced: true, differs: true},
		}, {
			name: "a score became undefined",
			now:  func(w *world) { w.nan = "ig" },
			want: is{reproduced: true, differs: true},
		}, {
			name:  "a method's parameter changed",
			now:   func(w *world) { w.steps["ig"] = 1 },
			want:  is{reproduced: true, rewritten: true},
			fresh: func(w *world) { w.steps["ig"] = 1 },
		}, {
			name:  "a parameter changed, on another processor",
			now:   func(w *world) { w.steps["ig"], w.shift["rise"], w.grey, w.publish = 1, 1e-6, 1, nil },
			want:  is{reproduced: true, rewritten: true, removed: true},
			fresh: func(w *world) { w.steps["ig"], w.publish = 1, nil },
		}, {
			name:  "a method more",
			now:   func(w *world) { w.methods = append(w.methods, "abs") },
			want:  is{reproduced: true, added: true, rewritten: true},
			fresh: func(w *world) { w.methods = append(w.methods, "abs") },
		}, {
			name:  "a method less",
			now:   func(w *world) { w.methods = w.methods[1:] },
			want:  is{reproduced: true, rewritten: true, removed: true},
			fresh: func(w *world) { w.methods = w.methods[1:] },
		}, {
			name:  "an image less",
			now:   func(w *world) { w.items = 4 },
			want:  is{rewritten: true},
			fresh: func(w *world) { w.items = 4 },
		}, {
			name:  "nothing published any more",
			now:   func(w *world) { w.publish = nil },
			want:  is{reproduced: true, removed: true},
			fresh: func(w *world) { w.publish = nil },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := newWorld()
			if test.before != nil {
				test.before(before)
			}
			dir, was := fresh(t, before.results())
			want := was
			if test.fresh != nil {
				w := newWorld()
				test.fresh(w)
				_, want = fresh(t, w.results())
			}
			now := newWorld()
			test.now(now)

			said, err := Verify(dir, now.results())
			if err != nil {
				t.Fatal(err)
			}
			same(t, folder(t, dir), was) // verifying writes nothing
			v := write(t, dir, now.results())
			for _, done := range []string{"rewritten", "removed"} {
				if would := "\nwould be " +
					done; strings.Contains("\n"+said.String(), would) != strings.Contains(v.String(), done) {
					t.Errorf("Verify says\n%s\nfor what Write has %s", said, done)
				}
			}
			if strings.ReplaceAll(said.String(), "would be ", "") != v.String() {
				t.Errorf("Verify says\n%s\nWrite says\n%s", said, v)
			}
			got := is{v.Reproduced.Scores > 0, len(v.Of(New)) > 0, len(v.Of(Rewritten)) > 0,
				len(v.Of(Removed)) > 0, len(v.Of(Differs)) > 0, len(v.Of(Kept)) > 0}
			if got != test.want {
				t.Errorf("outcomes %+v, want %+v:\n%s", got, test.want, v)
			}
			if v.OK() == test.want.differs {
				t.Errorf("OK() = %v", v.OK())
			}
			same(t, folder(t, dir), want)
			// The files that changed are the ones that were said to.
			after := folder(t, dir)
			for name := range was {
				if changed := after[name] != was[name]; changed != slices.Contains(v.Changed, name) &&
					!strings.HasSuffix(name, "/") {
					t.Errorf("%s changed: %v, but the verdict has %v", name, changed, v.Changed)
				}
			}
			if again := write(t, dir, now.results()); len(again.Changed) > 0 {
				t.Errorf("a second time changes %v", again.Changed)
			}
		})
	}
}

func TestVerdictInWords(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	w := newWorld()
	w.shift["ig"] = 3e-7
	want := "reproduced 3 scores, 15 item scores, 3 table rows, 2 figures, 1 text, 6 other cells (largest " +
		"deviation 3e-7)"
	if v := write(t, dir, w.results()); v.String() != want || !v.Current() {
		t.Errorf("got  %s\nwant %s", v, want)
	}
	w.shift["ig"] = 0.0025 // 1 % of the first score
	want = `reproduced 2 scores, 10 item scores, 2 table rows, 2 figures, 6 other cells (largest deviation 0)
differs: auc[method=ig] mean 0.27 → 0.2725 (tolerance 0.0001)
differs: auc[method=ig] img-00 value 0.25 → 0.2525 (tolerance 0.0001), and 4 more rows in items/auc.csv
differs: leaderboard ig mean 0.27 → 0.2725 (tolerance 0.0001)
differs: leaderboard text "**ig** ranks first of 3 (mean 0.270)." → "**ig** ranks first of 3 (mean 0.273)."`
	if v := write(t, dir, w.results()); v.String() != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
	w = newWorld()
	w.methods = append(w.methods[1:], "abs")
	want = `reproduced 2 scores, 10 item scores, 3 other cells (largest deviation 0)
new: 8 rows of auc[method=abs], maps[method=abs], leaderboard
rewritten: 7 rows of leaderboard, sheet
removed: 8 rows of auc[method=ig], maps[method=ig], leaderboard`
	if v := write(t, dir, w.results()); v.String() != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
}

func TestAccept(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	w := newWorld()
	w.shift["ig"], w.grey = 0.01, 40
	_, want := fresh(t, w.results())
	v, err := Write(dir, w.results(), Options{Accept: true})
	if err != nil {
		t.Fatal(err)
	}
	if !v.OK() || len(v.Of(Rewritten)) == 0 {
		t.Errorf("verdict: %s", v)
	}
	same(t, folder(t, dir), want)

	// What's within the tolerance isn't rewritten along with it.
	w.shift["rise"], w.shift["random"] = 1e-6, 0.02
	if _, err = Write(dir, w.results(), Options{Accept: true}); err != nil {
		t.Fatal(err)
	}
	if got := folder(t, dir)["items/auc.csv"]; !strings.Contains(got, "auc[method=rise],0.333333,") ||
		!strings.Contains(got, "auc[method=random],undefined,0.53,") {
		t.Errorf("items after accepting:\n%s", got)
	}
}

// A run in which something failed publishes the rest and removes nothing.
func TestFailed(t *testing.T) {
	dir, was := fresh(t, newWorld().results())
	w := newWorld()
	w.methods = []string{"abs", "ig", "rise"} // random is gone, abs is new
	w.steps["ig"] = 1
	w.failed["rise"] = true
	v := write(t, dir, w.results())
	if len(v.Of(Kept)) == 0 || len(v.Of(Removed)) > 0 || v.Current() {
		t.Errorf("verdict: %s", v)
	}
	got := folder(t, dir)
	for _, name := range []string{"tables/leaderboard.csv", "figures/sheet.png", "figures/sheet.decay.svg",
		"cells/leaderboard.jsonl", "cells/sheet.jsonl"} {
		if got[name] != was[name] {
			t.Errorf("%s changed:\n%s", name, got[name])
		}
	}
	for _, name := range []string{"items/auc.csv", "cells/maps.jsonl", "cells/auc.jsonl"} {
		for line := range strings.Lines(was[name]) {
			if keeps := !strings.Contains(line, "ig,") && !strings.Contains(line, "=ig"); keeps &&
				!strings.Contains(got[name], line) {
				t.Errorf("%s lost %s", name, line)
			}
		}
		if !strings.Contains(got[name], "abs") {
			t.Errorf("%s doesn't have the new method:\n%s", name, got[name])
		}
	}
	for _, s := range []string{"**ig** ranks first", "an earlier run",
		"> **No longer in the experiment**, but shown with the rest until nothing fails any more (2 " +
			"cells): " +
			"`auc[method=random]`, `maps[method=random]`",
		"**Failed** (1 cell): `maps[method=rise]` (shown as", "`auc[method=rise]`",
		"tables/leaderboard.csv"} {
		if !strings.Contains(got["README.md"], s) {
			t.Errorf("README.md doesn't say %q:\n%s", s, got["README.md"])
		}
	}
	if again := write(t, dir, w.results()); len(again.Changed) > 0 {
		t.Errorf("a second time changes %v", again.Changed)
	}
	w.failed = map[string]bool{}
	_, want := fresh(t, w.results())
	write(t, dir, w.results())
	same(t, folder(t, dir), want)

	// Nothing finished: nothing but README.md changes.
	for _, m := range w.methods {
		w.failed[m] = true
	}
	write(t, dir, w.results())
	got = folder(t, dir)
	want["README.md"], want[folderFile] = got["README.md"], got[folderFile]
	same(t, got, want)
}

// What git and editors leave is cleaned up without a change of what's said.
func TestDamage(t *testing.T) {
	text := []string{"cells/auc.jsonl", "cells/maps.jsonl", "cells/images.jsonl", "items/auc.csv",
		"tables/leaderboard.csv", folderFile, "README.md", "experiment.yaml", ".gitattributes",
		"figures/sheet.decay.svg"}
	all := append(slices.Clone(text), "figures/sheet.png")
	lines := func(s string) []string { return slices.Collect(strings.Lines(s)) }
	for name, damage := range map[string]struct {
		files []string
		to    func(s string) string
	}{
		"emptied":      {all, func(string) string { return "" }},
		"truncated":    {all, func(s string) string { return s[:len(s)/2] }},
		"a number cut": {[]string{text[0], text[3], text[4]}, func(s string) string { return s[:len(s)-3] }},
		"garbage":      {all, func(string) string { return "\x00\xff\"{[,\n\n,definition\n\"" }},
		"CRLF":         {text, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
		"doubled":      {text[:5], func(s string) string { return s + s }},
		"each line doubled": {text[:5], func(s string) string {
			var b strings.Builder
			for _, l := range lines(s) {
				b.WriteString(l + l)
			}
			return b.String()
		}},
		"reversed": {text[:5],
			func(s string) string { l := lines(s); slices.Reverse(l); return strings.Join(l, "") }},
		"conflict": {text, func(s string) string {
			l := lines(s)
			return "<<<<<<< HEAD\n" + strings.Join(l, "") + "=======\n" + strings.Join(l[:len(l)/2], "") +
				">>>>>>> other\n"
		}},
		"numbers as words": {text[:5], func(s string) string { return strings.ReplaceAll(s, "0.", "zero.") }},
		"a last line": {text[:5],
			func(s string) string { return s + `{"cell":"auc[method=ig]","definition":"` }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, want := fresh(t, newWorld().results())
			for _, name := range damage.files {
				put(t, dir, name, damage.to(want[name]))
			}
			if v := write(t, dir, newWorld().results()); !v.OK() {
				t.Errorf("verdict: %s", v)
			}
			same(t, folder(t, dir), want)
			for _, name := range damage.files { // one at a time
				put(t, dir, name, damage.to(want[name]))
				write(t, dir, newWorld().results())
			}
			same(t, folder(t, dir), want)
		})
	}
}

// An altered number is a claim that this run doesn't reproduce.
func TestAltered(t *testing.T) {
	dir, want := fresh(t, newWorld().results())
	for name, replace := range map[string][2]string{
		"cells/auc.jsonl":        {`"mean":0.27,`, `"mean":0.29,`},
		"items/auc.csv":          {"=ig],0.25,0.26,", "=ig],0.25,0.261,"},
		"tables/leaderboard.csv": {"ig,1,", "ig,2,"},
		folderFile:               {"**ig** ranks", "**abs** ranks"},
	} {
		altered := strings.Replace(want[name], replace[0], replace[1], 1)
		if altered == want[name] {
			t.Fatalf("%s has no %q", name, replace[0])
		}
		put(t, dir, name, altered)
		v := write(t, dir, newWorld().results())
		if len(v.Of(Differs)) != 1 || v.Of(Differs)[0].File != name {
			t.Errorf("%s altered: %s", name, v)
		}
		if got := folder(t, dir)[name]; got != altered {
			t.Errorf("%s was changed to\n%s", name, got)
		}
		if _, err := Write(dir, newWorld().results(), Options{Accept: true}); err != nil {
			t.Fatal(err)
		}
		same(t, folder(t, dir), want)
	}
	// A row too many under a valid definition is noticed as well.
	row := slices.Collect(strings.Lines(want["tables/leaderboard.csv"]))[1]
	put(t, dir, "tables/leaderboard.csv",
		want["tables/leaderboard.csv"]+strings.Replace(row, "ig,1", "best,0", 1))
	if v := write(t, dir, newWorld().results()); len(v.Of(Differs)) != 1 || v.Of(Differs)[0].Item != "best" {
		t.Errorf("a row too many: %s", v)
	}
}

// Interrupted before any system call, and called again, it leaves the folder of an undisturbed run.
func TestInterrupted(t *testing.T) {
	now := newWorld()
	now.methods = []string{"abs", "ig", "rise"}
	now.steps["ig"] = 1
	now.shift["rise"] = 1e-6
	undisturbed, _ := fresh(t, newWorld().results())
	write(t, undisturbed, now.results())
	want := folder(t, undisturbed)

	stop := errors.New("killed")
	steps := 0
	for at := 0; ; at++ {
		dir, _ := fresh(t, newWorld().results())
		n := 0
		_, err := Write(dir, now.results(), killed(&n, at, stop))
		if err != nil && !errors.Is(err, stop) {
			t.Fatal(err)
		}
		// Once more, one step after the first kill.
		n = 0
		Write(dir, now.results(), killed(&n, 1, stop))
		write(t, dir, now.results())
		same(t, folder(t, dir), want)
		if err == nil {
			break
		}
		steps++
	}
	if steps < 30 {
		t.Errorf("only %d steps to be killed at", steps)
	}
}

// killed makes a run one that is killed before the call to the system after the first at; n counts these.
func killed(n *int, at int, stop error) Options {
	step := func() error {
		if *n++; *n > at {
			return stop
		}
		return nil
	}
	return Options{wrap: func(s fileSystem) fileSystem { return killedSystem{s, step} }}
}

type killedSystem struct {
	fileSystem
	step func() error
}

func (k killedSystem) MkdirAll(name string, perm fs.FileMode) error {
	if err := k.step(); err != nil {
		return err
	}
	return k.fileSystem.MkdirAll(name, perm)
}

func (k killedSystem) Rename(from, to string) error {
	if err := k.step(); err != nil {
		return err
	}
	return k.fileSystem.Rename(from, to)
}

func (k killedSystem) Remove(name string) error {
	if err := k.step(); err != nil {
		return err
	}
	return k.fileSystem.Remove(name)
}

func (k killedSystem) Create(name string) (file, error) {
	if err := k.step(); err != nil {
		return nil, err
	}
	f, err := k.fileSystem.Create(name)
	return killedFile{f, k.step}, err
}

type killedFile struct {
	file
	step func() error
}

// Write leaves half of the bytes if the run is killed.
func (k killedFile) Write(b []byte) (int, error) {
	if err := k.step(); err != nil {
		k.file.Write(b[:len(b)/2])
		return 0, err
	}
	return k.file.Write(b)
}

// Two runs at once on one folder both win.
func TestConcurrent(t *testing.T) {
	_, want := fresh(t, newWorld().results())
	for range 20 {
		dir := t.TempDir()
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if _, err := Write(dir, newWorld().results(), Options{}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		write(t, dir, newWorld().results())
		same(t, folder(t, dir), want)
	}
}

// Other people's files in the folder stay.
func TestForeignFiles(t *testing.T) {
	dir, _ := fresh(t, newWorld().results())
	mine := map[string]string{"notes.md": "mine", "tables/mine.csv": "a,b\n1,2\n",
		"cells/mine.jsonl": "{\"a\":1}\n", "figures/mine.png": "no picture",
		"items/deep/x.csv": "a,definition\n"}
	for name, s := range mine {
		put(t, dir, name, s)
	}
	w := newWorld()
	w.publish = nil
	write(t, dir, w.results())
	got := folder(t, dir)
	for name, s := range mine {
		if got[name] != s {
			t.Errorf("%s is %q", name, got[name])
		}
	}
}

func TestFiles(t *testing.T) {
	if files, err := Files(filepath.Join(t.TempDir(), "none")); err != nil || len(files) > 0 {
		t.Errorf("a missing folder has %v, %v", files, err)
	}
	dir, all := fresh(t, newWorld().results())
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if f.Digest != stages.Sum([]byte(all[f.Name])) {
			t.Errorf("digest of %s", f.Name)
		}
		delete(all, f.Name)
	}
	for name := range all {
		if !strings.HasSuffix(name, "/") {
			t.Errorf("%s isn't listed", name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("names: %v", names)
	}
	put(t, dir, "tables/.publish-1", "")
	if list, _ := Files(dir); len(list) != len(names)+1 {
		t.Errorf("what an interrupted run left isn't listed: %v", list)
	}
}

// Two branches add a method each; git's union driver merges their folders in one order or the other.
func TestMerge(t *testing.T) {
	base := newWorld()
	base.methods = []string{"ig", "rise"}
	a, b, both := newWorld(), newWorld(), newWorld()
	a.methods = []string{"ig", "random", "rise"}
	b.methods = []string{"abs", "ig", "rise"}
	b.steps["rise"], both.steps["rise"] = 1, 1
	b.shift["ig"] = 2e-6 // another processor
	both.methods = []string{"abs", "ig", "random", "rise"}
	baseDir, _ := fresh(t, base.results())
	branch := func(w *world) map[string]string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(baseDir)); err != nil {
			t.Fatal(err)
		}
		write(t, dir, w.results())
		return folder(t, dir)
	}
	x, y := branch(a), branch(b)
	_, want := fresh(t, both.results())
	ancestor := folder(t, baseDir)
	for _, turn := range []struct {
		ours, theirs map[string]string
		merge        func(t *testing.T, base, ours, theirs string) string
	}{{x, y, union}, {y, x, union}, {x, y, gitUnion}, {y, x, gitUnion}} {
		dir := t.TempDir()
		for name := range turn.ours {
			switch filepath.Ext(name) {
			case ".jsonl", ".csv":
				put(t, dir, name, turn.merge(t, ancestor[name], turn.ours[name], turn.theirs[name]))
			case ".md":
				put(t, dir, name,
					"<<<<<<< ours\n"+turn.ours[name]+"=======\n"+turn.theirs[name]+">>>>>>> theirs\n")
			case "":
			default:
				put(t, dir, name, turn.ours[name])
			}
		}
		v := write(t, dir, both.results())
		if !v.OK() {
			t.Errorf("verdict: %s", v)
		}
		if v.Reproduced.Scores != 4 {
			t.Errorf("%d scores reproduced, want 4:\n%s", v.Reproduced.Scores, v)
		}
		same(t, folder(t, dir), want)
	}
}

// union merges lines as git's union driver does where both sides changed the same place: one side's lines,
// then what only the other has.
func union(_ *testing.T, _, ours, theirs string) string {
	var out strings.Builder
	out.WriteString(ours)
	for line := range strings.Lines(theirs) {
		if !strings.Contains(ours, line) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// gitUnion asks git itself, if there is one.
func gitUnion(t *testing.T, base, ours, theirs string) string {
	git, err := exec.LookPath("git")
	if err != nil {
		return union(t, base, ours, theirs)
	}
	dir := t.TempDir()
	for name, s := range map[string]string{"base": base, "ours": ours, "theirs": theirs} {
		put(t, dir, name, s)
	}
	cmd := exec.Command(git, "merge-file", "-p", "--union", "ours", "base", "theirs")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Rows that are as good as equal may stand in another order, others not.
func TestOrder(t *testing.T) {
	results := func(values map[string]float64, order ...string) *Results {
		table := stages.Table{Ranked: true, Keys: []string{"method"},
			Numbers: []stages.Column{{Name: "score", Tolerance: 1e-3}}}
		for _, m := range order {
			table.Rows = append(table.Rows,
				stages.Row{Keys: []string{m}, Numbers: []stages.Number{stages.Number(values[m])}})
		}
		return &Results{Name: "order",
			Cells: []Cell{{Name: "best", Stage: "best", N: -1, Tables: []Table{{"table", table}}}}}
	}
	dir, was := fresh(t, results(map[string]float64{"a": 1, "b": 1.0001, "c": 2}, "a", "b", "c"))
	if v := write(t, dir,
		results(map[string]float64{"a": 1.0002, "b": 1.0001, "c": 2}, "b", "a", "c")); !v.Current() {
		t.Errorf("verdict: %s", v)
	}
	same(t, folder(t, dir), was)
	put(t, dir, "tables/best.csv",
		strings.Replace(was["tables/best.csv"], "method,score\n", "method,score\nz,zero\n", 1))
	write(t, dir, results(map[string]float64{"a": 1, "b": 1.0001, "c": 2}, "a", "b", "c"))
	same(t, folder(t, dir), was)
}

func TestManyCellsOfAStage(t *testing.T) {
	var r Results
	r.Publish = []string{"t"}
	for _, id := range []string{"x", "y"} {
		table := stages.Table{Keys: []string{"item", "model"},
			Numbers: []stages.Column{{Name: "v", Digits: 1}}}
		if id == "y" {
			table.Numbers = append(table.Numbers, stages.Column{Name: "w"})
		}
		row := stages.Row{Keys: []string{"a,\"b\"\n|", "m"}}
		for range table.Numbers {
			row.Numbers = append(row.Numbers, stages.Number(math.Inf(1)))
		}
		table.Rows = []stages.Row{row}
		coord := []stages.Coord{{Axis: "model", ID: id}}
		r.Cells = append(r.Cells, Cell{
			Name: "t[model=" + id + "]", Stage: "t", Coord: coord, N: -1, Definition: stages.Sum([]byte(id)),
			Tables:  []Table{{"table", table}, {"more", table}},
			Figures: []Figure{{"figure", "svg", "", []byte("<svg></svg>")}},
			Scores: []Score{{"p", stages.Measure{}, Values{{"b", 1}, {"a", math.NaN()}}.items()},
				{"q", stages.Measure{}, Values{{"b", math.Inf(-1)}, {"a", 0}}.items()}},
		})
	}
	dir, got := fresh(t, &r)
	want := `cell.model,item,model,v,w
x,"a,""b""
|",m,+Inf,
y,"a,""b""
|",m,+Inf,+Inf
`
	if got["tables/t.csv"] != want {
		t.Errorf("tables/t.csv is\n%s\nwant\n%s", got["tables/t.csv"], want)
	}
	names := slices.Sorted(maps.Keys(got))
	if want := []string{"./", ".gitattributes", "README.md", "cells/", "cells/t.jsonl", "experiment.yaml",
		"figures/", "figures/t.model=x.svg", "figures/t.model=y.svg", folderFile, "items/", "items/t.p.csv",
		"items/t.q.csv", "tables/", "tables/t.csv", "tables/t.more.csv", "tables/t.more.tex",
		"tables/t.tex"}; !slices.Equal(names, want) {
		t.Errorf("files: %v", names)
	}
	line := `{"cell":"t[model=x]","definition":"` + r.Cells[0].Definition.Short() +
		`","n":2,"rows":{"more":1,"table":1},"scores":{"p":{"mean":1,"tolerance":0,"undefined":1},"q":{"mean":"-Inf","tolerance":0,"undefined":0}}}`
	if first := slices.Collect(strings.Lines(got["cells/t.jsonl"]))[0]; first != line+"\n" {
		t.Errorf("line is\n%swant\n%s", first, line)
	}
	if v := write(t, dir, &r); !v.Current() || len(v.Changed) > 0 || v.Reproduced.Scores != 4 {
		t.Errorf("verdict: %s", v)
	}
}

// Ten thousand cells without a change have to be compared in well under a second.
func BenchmarkVerify(b *testing.B) {
	var r Results
	for i := range 10000 {
		r.Cells = append(r.Cells, Cell{
			Name: fmt.Sprintf("c[x=%d]", i), Stage: "c",
			Coord: []stages.Coord{{Axis: "x", ID: fmt.Sprint(i)}}, Params: []byte(`{"steps":3,"a":"b"}`),
			Scores: []Score{{"c", stages.Measure{}, Values{{"a", 1}}.items()}},
		})
	}
	dir := b.TempDir()
	if _, err := Write(dir, &r, Options{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v, err := Verify(dir, &r); err != nil || !v.Current() {
			b.Fatal(v, err)
		}
	}
}

// TestNewItems: a file of items is the same whether there was one before or not, and whatever the order of
// the items.
func TestNewItems(t *testing.T) {
	r := &Results{Name: "x", Cells: []Cell{
		{Name: "s", Stage: "s", N: 3, Definition: stages.Sum([]byte("s")),
			Scores: []Score{{"p", stages.Measure{}, Values{{"b", 1}, {"c", 2}, {"a", math.NaN()}}.items()}}},
		{Name: "t[k=1]", Stage: "t", N: 1, Coord: []stages.Coord{{Axis: "k", ID: "1"}},
			Definition: stages.Sum([]byte("t")),
			Scores:     []Score{{"p", stages.Measure{}, Values{{"b", 1}}.items()}}},
		{Name: "t[k=0]", Stage: "t", N: 2, Coord: []stages.Coord{{Axis: "k", ID: "0"}},
			Definition: stages.Sum([]byte("u")),
			Scores:     []Score{{"p", stages.Measure{}, Values{{"a,\"", 1}, {"b", -1}}.items()}}},
	}}
	dir := t.TempDir()
	v := write(t, dir, r)
	want := folder(t, dir)
	if n := v.Of(New)[len(v.Of(New))-1]; !strings.HasPrefix(n.File, "items/t") || n.Cell != "t[k=1]" ||
		n.Rows != 1 {
		t.Errorf("the verdict ends with %+v", n)
	}
	for name := range want {
		if strings.HasSuffix(name, ".csv") {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := write(t, dir, r)
	if got := folder(t, dir); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(again.Changed) != 3 {
		t.Errorf("%v changed", again.Changed)
	}
}

// TestShownStaysInCells checks that cells/ has what a figure shows, and that reading keeps it.
func TestShownStaysInCells(t *testing.T) {
	r := newWorld().results()
	cell := &r.Cells[len(r.Cells)-1]
	cell.Shown = []byte(`{"columns":["ig"],"items":["a","b"]}`)
	_, got := fresh(t, r)
	line := got[cellsFile(cell.Name)]
	if !strings.Contains(line, `"shown":{"columns":["ig"],"items":["a","b"]}`) {
		t.Errorf("the line is %s", line)
	}
	lines := readLines([]byte(got[cellsFile(cell.Name)]))
	if len(lines) != 1 || string(lines[0].Shown) != string(cell.Shown) {
		t.Errorf("read again: %+v", lines)
	}
}

// TestKindsOfFigure checks that a figure with files of all kinds is shown once, with links to the others.
func TestKindsOfFigure(t *testing.T) {
	w := newWorld()
	r := w.results()
	cell := &r.Cells[len(r.Cells)-1]
	cell.Figures = []Figure{{"figure", "svg", "All", []byte("<svg></svg>")},
		{"png", "png", "All", w.picture()}, {"pdf", "pdf", "All", []byte("%PDF-1.5\nxref\nstartxref\n9\n")},
		{"tex", "tex", "All", []byte("a\n")}}
	_, got := fresh(t, r)
	readme := got["README.md"]
	for name := range got {
		if stem, ok := strings.CutSuffix(name, ".svg"); ok && strings.Contains(readme, "]("+stem+".svg)\n") {
			if got[stem+".png"] == "" || strings.Contains(readme, "!["+"All]("+stem+".png)") ||
				!strings.Contains(readme,
					"*All* ([PNG]("+stem+".png), [PDF]("+stem+".pdf), [TEX]("+stem+".tex))") {
				t.Errorf("%s isn't linked once:\n%s", stem, readme)
			}
			return
		}
	}
	t.Errorf("no SVG is shown:\n%s", readme)
}
