package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestFunctionOfExtended: a function's file is relative to the file that names it, also where one that
// extends it names another by the same text.
func TestFunctionOfExtended(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"base/b.yaml": "name: b\nstages:\n  one: {uses: \"f.py:f\"}\n",
		"x.yaml": "extends: base/b.yaml\nname: x\nstages:\n  two: {uses: \"f.py:f\"}\n" +
			"  again: {uses: \"./f.py:f\"}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	catalog, of, loaded := fakeCatalog{}, map[*stages.Stage]string{}, []string(nil)
	fake(catalog, "f.py:f", stages.Whole, "", "scores", noParams{})
	p, err := Load(filepath.Join(dir, "x.yaml"), fakeCatalog{}, Overrides{Python: true,
		Function: func(uses, file string) (*stages.Stage, error) {
			s := *catalog["f.py:f"]
			name, err := filepath.Rel(dir, file)
			of[&s], loaded = filepath.ToSlash(name), append(loaded, name)
			return &s, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[string]string{"one": "base/f.py", "two": "f.py", "again": "f.py"} {
		if got := of[p.stepCalled(t, step).Cells[0].Stage]; got != want {
			t.Errorf("%s is of %s, want %s", step, got, want)
		}
	}
	if slices.Sort(loaded); len(loaded) != 2 {
		t.Errorf("imported are %q", loaded)
	}
}
