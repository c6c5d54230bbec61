package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPapersNets: experiments/papers/export.py makes each ONNX file that a command at the paper's scale
// names, or says that nobody publishes it, and lists no other.
func TestPapersNets(t *testing.T) {
	script, err := os.ReadFile("../../experiments/papers/export.py")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	entry := regexp.MustCompile(`(?m)^    "([^"]+\.onnx)": `)
	for _, m := range entry.FindAllStringSubmatch(string(script), -1) {
		if listed[m[1]] {
			t.Errorf("export.py lists %s twice", m[1])
		}
		listed[m[1]] = true
	}
	named := map[string]bool{}
	for _, name := range papers {
		file := "../../experiments/papers/" + name + ".yaml"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range loadPaper(t, file, headCommand(t, text, "Paper scale", name)).Cells {
			if c.Stage.Name != "model/onnx" {
				continue
			}
			_, texts := settled(c.Params)
			path := texts["path"]
			if !strings.Contains(path, "quickstart/") && !strings.Contains(path, "toy/") &&
				!strings.Contains(path, "text/") && !strings.HasPrefix(path, "hf:/") {
				named[path] = true
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(named)) {
		if !listed[file] {
			t.Errorf("export.py doesn't list %s, which a command names", file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(listed)) {
		if !named[file] {
			t.Errorf("export.py lists %s, which no command names", file)
		}
	}
}
