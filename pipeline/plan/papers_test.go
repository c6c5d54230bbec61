package plan

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// paperFiles returns the papers' experiments with the counts that their first lines state: "expands to 68
// cells: images 2, model 2".
func paperFiles(t testing.TB) map[string]map[string]int {
	files, err := filepath.Glob("testdata/papers/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d papers: %v", len(files), err)
	}
	counts := map[string]map[string]int{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		m :=
			regexp.MustCompile(`expands to (\d+) cells: (.*)\.$`).FindStringSubmatch(strings.TrimSpace(first))
		if m == nil {
			t.Fatalf("%s: no counts in %q", f, first)
		}
		counts[f] = map[string]int{}
		counts[f][""], _ = strconv.Atoi(m[1])
		for part := range strings.SplitSeq(m[2], ", ") {
			name, n, _ := strings.Cut(part, " ")
			counts[f][name], _ = strconv.Atoi(n)
		}
	}
	return counts
}

func checkCounts(t *testing.T, file string, p *Plan, want map[string]int) {
	t.Helper()
	total := 0
	for _, s := range p.Steps {
		if s.Implied {
			continue
		}
		total += len(s.Cells)
		if len(s.Cells) != want[s.Name] {
			t.Errorf("%s: %s has %d cells, want %d", file, s.Name, len(s.Cells), want[s.Name])
		}
	}
	if total != want[""] {
		t.Errorf("%s: %d cells, want %d", file, total, want[""])
	}
}

// Every main table of the four papers can be written, and expands to as many cells as it should.
func TestPapersExpand(t *testing.T) {
	for file, want := range paperFiles(t) {
		p, err := Load(file, paperCatalog(), Overrides{})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		checkCounts(t, file, p, want)
		if len(p.Warnings) > 0 {
			t.Errorf("%s: %v", file, p.Warnings)
		}
	}
}

// With stages missing, the diagnostics are of those alone, and the counts are the same.
func TestPapersWithMissingStages(t *testing.T) {
	missing := []string{
		"dataset/voc", "dataset/confident", "model/gridpg", "attribute/abslrp", "attribute/saliency",
		"attribute/left-ig",
		"mosaic/grid", "perturb/gradient-masking", "score/pic", "score/mas", "stats/irr", "fuse/meta-rank",
		"report/table",
	}
	for file, want := range paperFiles(t) {
		p, err := Load(file, paperCatalog().without(missing...), Overrides{})
		var ds Diags
		if !errors.As(err, &ds) {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, d := range ds {
			if !strings.HasPrefix(d.Msg, "unknown stage ") {
				t.Errorf("%v", d)
			}
		}
		checkCounts(t, file, p, want)
	}
	// Nothing exists at all.
	for file, want := range paperFiles(t) {
		p, _ := Load(file, fakeCatalog{}, Overrides{})
		checkCounts(t, file, p, want)
	}
}

func TestPapersResolvedReadBack(t *testing.T) {
	for file := range paperFiles(t) {
		p, err := Load(file, paperCatalog(), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		checkReadBack(t, p, filepath.Dir(file))
	}
}

// checkReadBack tests that a plan's resolved experiment gives the same plan, under the same --limit and
// --only.
func checkReadBack(t testing.TB, p *Plan, dir string, only ...string) {
	t.Helper()
	text := p.Resolved()
	q, err := Parse("resolved.yaml", text, dir, paperCatalog(), Overrides{Limit: p.Limit, Only: only})
	if err != nil {
		t.Errorf("%v\nin\n%s", err, text)
		return
	}
	if got, want := q.graphText(), p.graphText(); got != want {
		t.Errorf("the resolved experiment\n%s\ngives\n%s\nwant\n%s", text, got, want)
	}
	q.Narrowed = p.Narrowed
	if again := q.Resolved(); string(again) != string(text) {
		t.Errorf("resolved once\n%s\ntwice\n%s", text, again)
	}
}
