package main

import (
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

// textsYAML judges texts by every stage of reports, statistics and fusions that takes scores or curves.
//
//go:embed testdata/texts.yaml
var textsYAML string

// TestTextsAreNoImages publishes many and few texts: nothing in the folder may call them images.
func TestTextsAreNoImages(t *testing.T) {
	runtimeOrSkip(t)
	builtin := registry.Builtin()
	for _, family := range []string{"report", "stats", "fuse"} {
		for _, s := range builtin.Family(family) {
			if slices.ContainsFunc(s.Inputs, func(p stages.Port) bool {
				return !p.Optional && (p.Type == stages.Scores || p.Type == stages.Curves)
			}) && !strings.Contains(textsYAML, "uses: "+s.Name+",") {
				t.Errorf("no experiment of texts has %s", s.Name)
			}
		}
	}
	image := regexp.MustCompile(`(?i)\b(images?|pixels?)\b`)
	others := strings.NewReplacer(`"size":"image"`, "") // a choice of a parameter's
	written := []string{".md", ".csv", ".jsonl", ".tex", ".svg"}
	for _, count := range []string{"12", "3", "1"} {
		t.Run(count, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]string{"x.yaml": strings.Replace(textsYAML, "COUNT", count, 1)})
			for _, name := range []string{"reviews.csv", "reviews.onnx", "tokenizer.json"} {
				b, err := os.ReadFile(filepath.Join("..", "..", "experiments", "text", name))
				if err != nil {
					t.Fatal(err)
				}
				w.write(name, b)
			}
			if ran := w.run(0, "run", "x.yaml"); image.MatchString(ran.stdout + ran.stderr) {
				t.Error(ran.stdout + ran.stderr)
			}
			texts := 0
			folder := os.DirFS(w.path("artifacts/texts"))
			err := fs.WalkDir(folder, ".", func(name string, _ fs.DirEntry, err error) error {
				if err != nil || !slices.Contains(written, filepath.Ext(name)) {
					return err
				}
				for line := range strings.Lines(w.read("artifacts/texts/" + name)) {
					if image.MatchString(others.Replace(line)) {
						t.Errorf("%s: %s", name, line)
					}
					texts += strings.Count(line, "text")
				}
				return nil
			})
			if err != nil || texts < 50 {
				t.Errorf("%v, %d texts", err, texts)
			}
			if err := os.CopyFS(w.path("before"), os.DirFS(w.path("artifacts/texts"))); err != nil {
				t.Fatal(err)
			}
			w.write("before/cells/rise.jsonl", []byte(strings.ReplaceAll(w.read("before/cells/rise.jsonl"),
				`"mean":0.`, `"mean":7.`)))
			diff := w.command("runexp", "diff", "before", "artifacts/texts").stdout
			if !strings.Contains(diff, "over texts") || image.MatchString(diff) {
				t.Error(diff)
			}
		})
	}
}
