package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsExtending adds the files and lines of docs/extending.md to the program, as an overlay, and runs the
// tests that the page names. Those that look for missing lines would read the files without the overlay.
func TestDocsExtending(t *testing.T) {
	runtimeOrSkip(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	put := func(name, text string) {
		t.Helper()
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, name)] = to
	}
	changed := map[string]string{}
	for _, f := range fencesOf(page(t, "docs/extending.md")) {
		switch kind, name, _ := strings.Cut(f.info, " "); kind {
		case "go":
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				t.Errorf("docs/extending.md:%d: there is a %s: choose another example", f.line, name)
			}
			put(name, f.body)
		case "diff":
			if changed[name] == "" {
				changed[name] = page(t, name)
			}
			var old, now strings.Builder
			for line := range strings.Lines(f.body) {
				if line[0] == ' ' {
					old.WriteString(line[1:])
				}
				now.WriteString(line[1:])
			}
			if n := strings.Count(changed[name], old.String()); n != 1 {
				t.Errorf("docs/extending.md:%d: %s has %q %d times", f.line, name, old.String(), n)
			}
			changed[name] = strings.Replace(changed[name], old.String(), now.String(), 1)
			put(name, changed[name])
		}
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	const tests = "^(TestHoyer|TestBuiltinIsWellFormed|TestDefinitions|TestAdjoint|TestMutants)$/" +
		"^(score|attribute|ReverseSequence)$"
	cmd := exec.Command("go", "test", "-vet=off", "-v", "-overlay", file, "-run", tests, "./stages/score",
		"./stages/internal/relevance", "./registry")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []string{"TestHoyer ", "TestBuiltinIsWellFormed/score/hoyer ", "TestDefinitions ",
		"TestBuiltinIsWellFormed/attribute/squared-gradient ", "TestAdjoint/ReverseSequence/beginnings ",
		"TestMutants/ReverseSequence"} {
		if !strings.Contains(string(out), "--- PASS: "+test) {
			t.Errorf("%s wasn't run:\n%s", test, out)
		}
	}
}
