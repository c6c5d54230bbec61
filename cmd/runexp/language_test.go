package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// Of the papers' main tables, check reports nothing but stages, parameters
// and their values that don't exist yet.
func TestPapersAgainstTheRegistry(t *testing.T) {
	allowed := regexp.MustCompile(`^unknown stage |^unknown parameter |^the parameter .* isn't known to | ` +
		`is none of |: this method makes its map at the input`)
	files, err := filepath.Glob("../../pipeline/plan/testdata/papers/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d papers: %v", len(files), err)
	}
	for _, file := range files {
		_, err := plan.Load(file, registry.Builtin(), plan.Overrides{})
		var ds plan.Diags
		if err != nil && !errors.As(err, &ds) {
			t.Errorf("%s: %v", file, err)
		}
		for _, d := range ds {
			if !allowed.MatchString(d.Msg) {
				t.Error(d)
			}
		}
	}
}

// The experiments that come with the program have nothing wrong with them, and
// what is published of them reads back as the same experiment.
func TestExperimentsAreWellFormed(t *testing.T) {
	var files []string
	for _, folder := range []string{"", "metrics", "misleads"} {
		some, err := filepath.Glob(filepath.Join("../../experiments", folder, "*.yaml"))
		if err != nil || len(some) == 0 {
			t.Fatalf("no experiments in %q: %v", folder, err)
		}
		files = append(files, some...)
	}
	for _, file := range files {
		p, err := plan.Load(file, registry.Builtin(), plan.Overrides{})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(p.Warnings) > 0 {
			t.Errorf("%v", p.Warnings)
		}
		text := p.Resolved()
		q, err := plan.Parse(file, text, filepath.Dir(file), registry.Builtin(), plan.Overrides{})
		if err != nil {
			t.Errorf("%v\nin\n%s", err, text)
			continue
		}
		if len(q.Cells) != len(p.Cells) || string(q.Resolved()) != string(text) {
			t.Errorf("%s: %d cells, and %d of\n%s", file, len(p.Cells), len(q.Cells), text)
		}
	}
}

// The ends of information curves, whose images are the most expensive to measure, are made once a model,
// whatever the number of methods.
func TestInformationCurvesShareTheirEnds(t *testing.T) {
	p, err := plan.Load("../../experiments/metrics/pic.yaml", registry.Builtin(), plan.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]int{}
	for _, c := range p.Cells {
		cells[c.Stage.Name]++
	}
	if cells["perturb/pic"] != 12 || cells["perturb/pic-ends"] != 2 || cells["model/predict"] != 2 {
		t.Errorf("cells %v", cells)
	}
}

// A size is a number, a text or a list of height and width, and an axis may have either.
func TestSizesAreNumbersOrPairs(t *testing.T) {
	experiment := func(size string) []byte {
		return []byte("name: x\naxes: {of: {one: {size: " + size + "}}}\nstages:\n  images: {uses: " +
			"dataset/folder, matrix: [of], with: {path: a, size: \"${of.size}\"}}\n  model: {uses: " +
			"model/onnx, with: {path: a.onnx, size: " + size + "}}\npublish: [model]\n")
	}
	var first string
	for _, size := range []string{"48x192", "[48, 192]", `["48", 192]`} {
		p, err := plan.Parse("x.yaml", experiment(size), ".", registry.Builtin(), plan.Overrides{})
		if err != nil {
			t.Errorf("%s: %v", size, err)
			continue
		}
		var params string
		for _, c := range p.Cells {
			params += fmt.Sprintf("%s %+v\n", c, c.Params)
		}
		if first == "" {
			first = params
		}
		if params != first {
			t.Errorf("%s is read as\n%swant\n%s", size, params, first)
		}
	}
	for _, size := range []string{"[48]", "[48, 192, 3]", "[[1, 2]]", "{h: 1}", "0"} {
		_, err := plan.Parse("x.yaml", experiment(size), ".", registry.Builtin(), plan.Overrides{})
		var ds plan.Diags
		if !errors.As(err, &ds) {
			t.Errorf("%s: %v", size, err)
		}
	}
}
