package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const twoYAML = `name: two
seed: 3
axes:
  method:
    constant: {uses: attribute/constant}
    random: {uses: attribute/random}
stages:
  photos: {uses: dataset/folder, with: {path: photos}}
  noise: {uses: attribute/random, in: {images: photos}}
  sheet: {uses: report/sheet, in: {maps: noise, images: photos}, over: all, with: {items: 2}}
  shapes: {uses: dataset/shapes, with: {count: 3, size: 32}}
  maps: {uses: "${method}", matrix: [method], in: {images: shapes}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: shapes.masks}}
  table: {uses: report/table, in: {values: mass}, over: all, with: {rows: [method]}}
publish: [table, sheet]
`

// git runs git in the world's folder, without anyone's settings.
func (w *world) git(args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	// A file that isn't there is no settings; /dev/null may hold some, where a container made it a file.
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+w.path("no-settings"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func newTwo(t testing.TB) *world {
	w := newWorld(t, map[string]string{"experiments/two.yaml": twoYAML})
	for i, name := range []string{"a", "b", "c"} {
		w.picture("experiments/photos/"+name+".bmp", 1+i)
	}
	return w
}

const two = "experiments/two.yaml"

// A second run executes nothing and changes nothing that git sees; then one byte of an image, one parameter,
// one object's size: each is seen, and costs only what follows from it.
func TestSecondRun(t *testing.T) {
	w := newTwo(t)
	w.git("init", "-q")
	w.run(0, "run", two)
	w.git("add", ".")
	w.git("commit", "-q", "-m", "all")
	if list := w.git("ls-files"); !strings.Contains(list, "artifacts/two/README.md") ||
		strings.Contains(list, ".runexp") {
		t.Fatalf("committed: %s", list)
	}
	again := func() {
		t.Helper()
		wantCells(t, "again", w.run(0, "run", two, "--json").executed(t), "")
		if s := w.git("status", "--porcelain"); s != "" {
			t.Errorf("git status after a run that had nothing to do:\n%s", s)
		}
	}
	again()

	// One byte, in a file of the same size and time of change.
	photo := w.path("experiments/photos/b.bmp")
	info, err := os.Stat(photo)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(photo)
	if err != nil {
		t.Fatal(err)
	}
	old := slices.Clone(b)
	b[len(b)-5] ^= 1
	w.write("experiments/photos/b.bmp", b)
	if err := os.Chtimes(photo, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	wantCells(t, "a byte of an image", w.run(0, "run", two, "--json").executed(t), "noise photos sheet")
	if s := w.git("status", "--porcelain"); !strings.Contains(s, "artifacts/two/figures/sheet.png") ||
		strings.Contains(s, "tables") {
		t.Errorf("git status after an image has changed:\n%s", s)
	}
	w.write("experiments/photos/b.bmp", old)
	again()

	// One parameter.
	w.write(two,
		[]byte(strings.Replace(twoYAML, "random: {uses: attribute/random}",
			"random: {uses: attribute/random, with: {distribution: normal}}", 1)))
	wantCells(t, "a parameter", w.run(0, "run", two, "--json").executed(t),
		"maps[method=random] mass[method=random] table")
	if s := w.git("diff", "--unified=0", "--",
		"artifacts"); regexp.MustCompile(`(?m)^[-+].*method=constant|^[-+]constant`).MatchString(s) {
		t.Errorf("rows of cells that didn't change are rewritten:\n%s", s)
	}
	w.write(two, []byte(twoYAML))
	again()

	// An axis in another order: what shows it runs, and rows of data stay where they are.
	lines := strings.SplitAfter(twoYAML, "\n")
	lines[4], lines[5] = lines[5], lines[4]
	w.write(two, []byte(strings.Join(lines, "")))
	wantCells(t, "an axis in another order", w.run(0, "run", two, "--json").executed(t), "table")
	if got := strings.Fields(w.git("diff", "--name-only", "--", "artifacts")); strings.Join(got, " ") !=
		"artifacts/two/README.md artifacts/two/cells/table.jsonl artifacts/two/experiment.yaml "+
			"artifacts/two/tables/table.tex" {
		t.Errorf("another order changes %v", got)
	}
	if s := w.read("artifacts/two/README.md"); strings.Index(s, "| random |") >
		strings.Index(s, "| constant |") {
		t.Errorf("README.md doesn't show the order that is written:\n%s", s)
	}
	w.write(two, []byte(twoYAML))
	again()

	// One object's size, in a store that holds nothing else.
	if err := os.RemoveAll(w.path(".runexp")); err != nil {
		t.Fatal(err)
	}
	w.run(0, "run", two)
	for _, o := range w.objects() {
		resize(t, o.path)
		wantCells(t, "an object with another size", w.run(0, "run", two, "--json").executed(t),
			strings.Join(o.cells, " "))
		again()
	}
}

// resize makes a file longer by a byte.
func resize(t testing.TB, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.Chmod(path, 0o644)
	}
	if err == nil {
		err = os.WriteFile(path, append(b, 0), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An object is a file of the store, with the cells whose results need it.
type object struct {
	path  string
	cells []string
}

// objects lists what the recorded actions need, read from the JSON in the logs.
func (w *world) objects() []object {
	w.Helper()
	logs, err := filepath.Glob(w.path(".runexp/store/actions/*.log"))
	if err != nil || len(logs) == 0 {
		w.Fatalf("no actions: %v", err)
	}
	cells := map[string][]string{}
	record := regexp.MustCompile(`\{"key":.*\}\n`)
	for _, file := range logs {
		b, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		for _, line := range record.FindAll(b, -1) {
			var a struct {
				Cell  string
				Packs []struct{ Object string }
			}
			if err := json.Unmarshal(line, &a); err != nil {
				w.Fatalf("%q: %v", line, err)
			}
			for _, p := range a.Packs {
				cells[p.Object] = append(cells[p.Object], a.Cell)
			}
		}
	}
	var list []object
	for name, of := range cells {
		list = append(list, object{w.path(fmt.Sprintf(".runexp/store/objects/%s/%s", name[:2], name)), of})
	}
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a.path, b.path) })
	if len(list) == 0 {
		w.Fatal("no objects")
	}
	return list
}

// What the store lost or what was altered there is noticed when it's read, computed again and reported.
func TestDamagedObjects(t *testing.T) {
	alter := func(t *testing.T, path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 0x10
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, path string)
		report string
	}{
		{"altered", alter,
			`warning: maps\[method=random\]: object [0-9a-f]+ is altered; it is computed again`},
		{"truncated", func(t *testing.T, path string) {
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 100); err != nil {
				t.Fatal(err)
			}
		}, `maps\[method=random\]: done .*\(object [0-9a-f]+ is truncated: 100 of \d+ bytes\)`},
		{"removed", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, `maps\[method=random\]: done .*\(object [0-9a-f]+ is missing\)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, whole := newTwo(t), newTwo(t)
			w.run(0, "run", two)
			hit := 0
			for _, o := range w.objects() {
				if slices.Equal(o.cells, []string{"maps[method=random]"}) {
					tc.damage(t, o.path)
					hit++
				}
			}
			if hit != 1 {
				t.Fatalf("%d objects of the cell", hit)
			}
			// Another metric reads the maps.
			const more = "mass.with.values=magnitude"
			e := w.run(0, "run", two, "--set", more, "--out", "out")
			if !regexp.MustCompile(`(?m)` + tc.report).MatchString(e.stderr) {
				t.Errorf("stderr doesn't report the cause, %s:\n%s", tc.report, e.stderr)
			}
			whole.run(0, "run", two, "--set", more, "--out", "out")
			same(t, whole.path("out"), w.path("out"))
			w.run(0, "cache", "verify")
		})
	}
}

// Altered bytes that nothing reads are found by cache verify.
func TestVerifyFindsDamage(t *testing.T) {
	w := newTwo(t)
	w.run(0, "run", two)
	o := w.objects()[0]
	resize(t, o.path)
	if e := w.run(6, "cache", "verify"); !strings.Contains(e.stdout, filepath.Base(o.path)[:16]) {
		t.Errorf("cache verify doesn't name the object: %s", e.stdout)
	}
	w.run(0, "run", two)
	w.run(0, "cache", "verify")
}
