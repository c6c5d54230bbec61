package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// picker passes on every other item.
func (l *lab) picker() stages.Stage {
	return stages.New(stages.Def[struct{}]{
		Name: "lab/picker", Doc: "every other item", Version: 1, Relation: stages.Whole, Named: true,
		Inputs:  []stages.Port{{Name: "images", Type: stages.Images}},
		Outputs: []stages.Port{{Name: "images", Type: stages.Images}},
		Run: func(_ context.Context, _ struct{}, e *stages.Env) error {
			l.count("picker", 1)
			for i := 0; i < e.Ports["images"][0].Items.Len(); i += 2 {
				if err := e.Pass("images", "images", i); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

const picked = `
name: picked
stages:
  images: {uses: lab/source}
  few:    {uses: lab/picker, in: {images: images}}
  maps:   {uses: lab/scale, in: {images: few}}
publish: []
`

// TestPassedItems checks that items that a Whole stage passes on keep names and bytes, whether these are kept
// or not, and after the store lost them.
func TestPassedItems(t *testing.T) {
	for name, yaml := range map[string]string{"kept": picked,
		"not kept": strings.Replace(picked, "{uses: lab/source}", "{uses: lab/source, store: none}", 1)} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			s := l.picker()
			l.stages[s.Name] = &s
			l.items = []string{"a=1", "b=2", "c=3"}
			const want = "a=1 c=3 "
			if got := l.text(l.mustRun(yaml), "few"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			l.want("first", "picker", 1, "scale", 2)
			l.mustRun(yaml)
			l.want("again", "picker", 0, "scale", 0, "source", 0)
			if err := os.RemoveAll(filepath.Join(l.dir, ".runexp", "store", "objects")); err != nil {
				t.Fatal(err)
			}
			if got := l.text(l.mustRun(strings.Replace(yaml, "lab/scale,", "lab/scale, with: {by: 3},", 1)),
				"few"); got != want {
				t.Errorf("without objects: got %q, want %q", got, want)
			}
			l.items = []string{"x=1", "b=2", "c=3"}
			if got, want := l.text(l.mustRun(yaml), "few"), "x=1 c=3 "; got != want {
				t.Errorf("renamed: got %q, want %q", got, want)
			}
		})
	}
}

type twoFilesParams struct {
	Dir string `yaml:"dir" doc:"a folder" file:"read"`
}

// TestFurtherFiles checks that the bytes of all files of a source are in the keys, and that an output port
// that a stage gets later, or that has nothing, is dealt with.
func TestFurtherFiles(t *testing.T) {
	l := newLab(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outputs := []stages.Port{{Name: "images", Type: stages.Images}, {Name: "labels", Type: stages.Labels}}
	define := func(n int) {
		s := stages.New(stages.Def[twoFilesParams]{
			Name: "lab/two-files", Doc: "two files", Version: 1, Outputs: outputs[:n],
			Hooks: func(twoFilesParams) stages.Hooks {
				return stages.Hooks{Lacks: func(port string, _ func(string) bool) error {
					if port == "labels" && n > 1 && l.rule == "lacks" {
						return errors.New("this folder has none")
					}
					return nil
				}}
			},
			Sources: func(p twoFilesParams, _ []string) ([]stages.Source, error) {
				return []stages.Source{{ID: "i", File: filepath.Join(p.Dir, "a"),
					With: [2]string{"", filepath.Join(p.Dir, "b")}}}, nil
			},
			Run: func(_ context.Context, _ twoFilesParams, e *stages.Env) error {
				l.count("two-files", 1)
				b, err := os.ReadFile(e.Source(0).With[1])
				e.Put("images", 0, big(float64(len(b))))
				if n > 1 {
					e.Put("labels", 0, stages.Scalar(1))
				}
				return err
			},
		})
		l.stages[s.Name] = &s
	}
	const yaml = "name: files\nstages:\n  f: {uses: lab/two-files, with: {dir: .}}\n" +
		"  maps: {uses: lab/scale, in: {images: f}}\npublish: []\n"
	define(1)
	write("a", "a")
	write("b", "b")
	l.mustRun(yaml)
	l.want("first", "two-files", 1)
	l.mustRun(yaml)
	l.want("again", "two-files", 0)
	write("b", "longer")
	if got := l.text(l.mustRun(yaml), "f"); got != "i=6 " {
		t.Errorf("another second file: %q", got)
	}
	l.want("another second file", "two-files", 1, "scale", 1)

	define(2)
	l.mustRun(yaml)
	l.want("a port that nobody reads", "two-files", 0)
	const wired = "  sums: {uses: lab/twice, in: {labels: f.labels}}\n"
	s := stages.New(stages.Def[struct{}]{
		Name: "lab/twice", Doc: "doubles", Version: 1,
		Inputs:  []stages.Port{{Name: "labels", Type: stages.Labels}},
		Outputs: []stages.Port{{Name: "scores", Type: stages.Scores}},
		Run: func(_ context.Context, _ struct{}, e *stages.Env) error {
			e.Put("scores", 0, stages.Scalar(2*number(e.In("labels", 0))))
			return nil
		},
	})
	l.stages[s.Name] = &s
	more := strings.Replace(yaml, "publish:", wired+"publish:", 1)
	if got := l.text(l.mustRun(more), "sums"); got != "i=2 " {
		t.Errorf("a port that is read: %q", got)
	}
	l.want("a port that is read", "two-files", 1, "scale", 0)

	l.rule = "lacks"
	_, err := plan.Parse("lab.yaml", []byte(more), l.dir, l, plan.Overrides{})
	if err == nil || !strings.Contains(err.Error(), `the input "labels" has no items: this folder has none`) {
		t.Errorf("a port without items: %v", err)
	}
}
