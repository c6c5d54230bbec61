package publish

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRenderersAreListed: every file render_<name>.go has its line in the list of renderers, which is sorted.
func TestRenderersAreListed(t *testing.T) {
	files, err := filepath.Glob("render_*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	listed := map[string]bool{}
	for _, r := range renderers {
		listed[r.name] = true
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "render_"), ".go")
		if strings.HasSuffix(name, "test") {
			continue
		}
		if !listed[name] {
			t.Errorf("%s isn't rendered: the list `renderers` in render.go lacks the line\n\t%sRenderer,",
				file, name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("the renderer %q has no file render_%s.go", name, name)
	}
	if !slices.IsSortedFunc(renderers, func(a, b renderer) int { return strings.Compare(a.name, b.name) }) {
		t.Error("the list `renderers` in render.go isn't sorted by name")
	}
}

// TestAnotherRenderer: a renderer of one's own is a value in the list. It has what the folder says as values,
// its file is written, found up to date, listed with the others and counted in the folder's budget, and
// nothing else changes.
func TestAnotherRenderer(t *testing.T) {
	_, before := fresh(t, newWorld().results())
	all := renderers
	t.Cleanup(func() { renderers = all })
	renderers = append(slices.Clone(all), renderer{
		name:  "latex",
		files: []pattern{{"latex/*.tex", "linguist-generated"}},
		render: func(f *Folder, add func(name string, b []byte)) {
			var b strings.Builder
			for _, l := range f.Lines {
				for _, m := range l.Means {
					fmt.Fprintf(&b, "%s & %.3f & %d of %d \\\\\n", l.Cell, m.Value, l.N-m.Undefined, l.N)
				}
			}
			for _, s := range f.Sheets {
				for _, r := range f.Shown(s) {
					rank, _ := r.number("rank")
					fmt.Fprintf(&b, "%s & %g \\\\\n", r.get("method"), rank)
				}
			}
			for _, p := range f.Pictures {
				fmt.Fprintf(&b, "%s: %s, %d bytes\n", p.File, p.Caption, len(p.Data))
			}
			fmt.Fprintf(&b, "%% %s\n", f.Answer())
			add("latex/tables.tex", []byte(b.String()))
		},
		read: func(_ *disk, _ string, b []byte) bool { return strings.Contains(string(b), "\\\\") },
	})
	w := newWorld()
	dir, got := fresh(t, w.results())
	want := `auc[method=ig] & 0.270 & 5 of 5 \\
auc[method=random] & 0.525 & 4 of 5 \\
auc[method=rise] & 0.353 & 5 of 5 \\
ig & 1 \\
rise & 2 \\
random & 3 \\
figures/sheet.png: maps of ig, random, rise, 332 bytes
figures/sheet.decay.svg: , 98 bytes
% ig ranks first of 3 (mean 0.270).
`
	if text := regexp.MustCompile(`[0-9]+ bytes`).ReplaceAllString(got["latex/tables.tex"],
		"N bytes"); text !=
		regexp.MustCompile(`[0-9]+ bytes`).ReplaceAllString(want, "N bytes") {
		t.Errorf("latex/tables.tex is\n%s", text)
	}
	if !strings.Contains(got[".gitattributes"], "\nlatex/*.tex linguist-generated\n") {
		t.Errorf(".gitattributes is\n%s", got[".gitattributes"])
	}
	for name := range before {
		if got[name] != before[name] && name != ".gitattributes" {
			t.Errorf("%s changed with the renderer", name)
		}
	}
	w.shift["ig"] = 1e-6 // another processor: what a renderer shows is what's published
	if v := write(t, dir, w.results()); !v.Current() || len(v.Changed) > 0 {
		t.Errorf("%s, changed %v", v, v.Changed)
	}
	files, err := Files(dir)
	if err != nil || !slices.ContainsFunc(files, func(f File) bool { return f.Name == "latex/tables.tex" }) {
		t.Errorf("the files are %v, %v", files, err)
	}
}
