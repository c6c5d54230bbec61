package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// previousBuild is the commit whose stores and review folders this build must find and reproduce.
// Keys, definitions and numbers are promises to people who have results: a change that moves one
// raises the Version of the stage it concerns, and whatever ran before still stands.
//
// Raise it when a change moves keys, definitions or files of the review folder on purpose, to the
// commit that does so, in a commit of its own that names what users lose. Build the command there, and
// make the fixture anew in an empty folder with the two nets in nets/:
//
//	runexp run previous.yaml --store store --out folder
//	rm -r store/running and the two objects of the models (the largest ones: the test has the nets)
//	tar -c store folder | gzip -9n > made.tar.gz
const previousBuild = "7a93f6781cb13c609e9a65dc658a840bc6ea78ee"

// previousRuntime is the ONNX Runtime that previousBuild had for the fixture. Programs are part of the
// keys, and another version may simplify models otherwise.
const previousRuntime = "1.32.0"

// reworded are the files of a review folder whose text this build may write otherwise, or add, once: they
// hold no number that isn't in another file. In LaTeX, marks that every row would have aren't drawn, and the
// intervals of κ are named as those over cases.
var reworded = []string{"README.md", "experiment.yaml", "folder.jsonl", ".gitattributes",
	"tables/leaderboard.tex", "tables/ranking.tex"}

var reproduced = regexp.MustCompile(`(?m)^folder: reproduced .*\(largest deviation 0\)$`)

// newPreviousWorld returns a world with the fixture's experiment and its nets.
func newPreviousWorld(t *testing.T) *world {
	t.Helper()
	runtimeOrSkip(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors add and multiply in one step, which rounds otherwise")
	}
	w := newWorld(t, nil)
	text, err := os.ReadFile("testdata/previous/previous.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.write("previous.yaml", text)
	for _, name := range []string{"resnet", "vit"} {
		b, err := os.ReadFile(net(t, name))
		if err != nil {
			t.Fatal(err)
		}
		w.write("nets/"+name+".onnx", b)
	}
	return w
}

// untar unpacks an archive into a folder of the world.
func (w *world) untar(from io.Reader, dir string, flags ...string) {
	w.Helper()
	if err := os.MkdirAll(w.path(dir), 0o777); err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command("tar", append([]string{"-x", "-C", w.path(dir)}, flags...)...)
	cmd.Stdin = from
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("tar: %v\n%s", err, out)
	}
}

// files returns the contents of all files below a folder of the world.
func (w *world) files(dir string) map[string]string {
	w.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.path(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, w.path(dir)+string(filepath.Separator))] = string(b)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// unchanged fails the test if a file of the folder isn't as it was, but for those named.
func (w *world) unchanged(dir string, was map[string]string, but ...string) {
	w.Helper()
	now := w.files(dir)
	for name, text := range was {
		if now[name] != text && !slices.Contains(but, name) {
			w.Errorf("%s/%s has other bytes than the previous build wrote", dir, name)
		}
	}
	for name := range now {
		if _, ok := was[name]; !ok && !slices.Contains(but, name) {
			w.Errorf("%s/%s is new: the previous build didn't write it", dir, name)
		}
	}
}

// reproduces runs the experiment on a store and a folder of the previous build: only the named cells
// are executed, and the folder keeps its bytes.
func (w *world) reproduces(cells string, args ...string) {
	w.Helper()
	was := w.files("folder")
	args = append([]string{"run", "previous.yaml", "--store", "store", "--out", "folder"}, args...)
	e := w.run(0, append(args, "--json")...)
	wantCells(w, "with the previous build's store", e.executed(w), cells)
	w.unchanged("folder", was, reworded...)
	if !reproduced.MatchString(e.stderr) {
		w.Errorf("the folder isn't reproduced: %s", e.stderr)
	}
	was = w.files("folder")
	if e := w.run(0, args...); !strings.HasPrefix(e.stdout, "folder: up to date\n") {
		w.Errorf("the second run finds something to do: %s", e.stdout)
	}
	w.unchanged("folder", was)
}

// TestPreviousBuild runs this build on a store and a review folder that the previous build made: every
// cell of every method is found under its key, so that only the models run, which the fixture leaves
// out, and early cut-off finds the rest.
func TestPreviousBuild(t *testing.T) {
	w := newPreviousWorld(t)
	if r, err := ort.Default(); err != nil || r.Version != previousRuntime {
		t.Skipf("skipped: the previous build's keys are those of ONNX Runtime %s, this is %s (%v)",
			previousRuntime, r.Version, err)
	}
	archive, err := os.Open("testdata/previous/made.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	w.untar(archive, ".", "-z")
	w.reproduces("model[model=resnet] model[model=vit]")
}

// TestPreviousReview writes the page of a review folder that the previous build made: all of its means are on
// it, and which maps its store hasn't got.
func TestPreviousReview(t *testing.T) {
	w := newWorld(t, nil)
	archive, err := os.Open("testdata/previous/made.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	w.untar(archive, ".", "-z")
	was := w.files("folder")
	w.run(0, "review", "folder", "--store", "store", "-o", "page.html")
	w.unchanged("folder", was)
	text, err := os.ReadFile(w.path("page.html"))
	if err != nil {
		t.Fatal(err)
	}
	var model struct {
		Scores []struct {
			Cells []struct {
				Cell string
				Mean *float64
			}
		}
		Left []string
	}
	data := regexp.MustCompile(`(?s)id="model">(.*?)</script>`).FindSubmatch(text)
	if data == nil || json.Unmarshal(data[1], &model) != nil {
		t.Fatalf("the page has no model: %.200s", data)
	}
	means := map[string]bool{}
	for _, s := range model.Scores {
		for _, c := range s.Cells {
			means[c.Cell] = means[c.Cell] || c.Mean != nil
		}
	}
	n := 0
	for name, lines := range was {
		if !strings.HasPrefix(name, "cells") {
			continue
		}
		for line := range strings.Lines(lines) {
			var l struct {
				Cell string
				Mean *float64
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if l.Mean != nil {
				n++
				if !means[l.Cell] {
					t.Errorf("the page hasn't got the mean of %s", l.Cell)
				}
			}
		}
	}
	if n == 0 {
		t.Error("the previous build's folder has no means")
	}
	missing := func(text string) bool { return strings.HasPrefix(text, "There are no maps of ") }
	if len(model.Left) != 4 || !slices.ContainsFunc(model.Left, missing) { // all have store: none
		t.Errorf("the page has left out %q, not the maps of four stages", model.Left)
	}
}

// TestPreviousBinary builds the command at previousBuild and has it make a store and a folder on this
// machine, with its ONNX Runtime: this build finds all of it, and makes the same from nothing.
func TestPreviousBinary(t *testing.T) {
	stagetest.InTurn(t, 0, 3)
	w := newPreviousWorld(t)
	tree, err := exec.Command("git", "-C", "../..", "archive", previousBuild).Output()
	if err != nil {
		t.Skipf("skipped: there is no history with commit %.7s here: git archive: %v", previousBuild, err)
	}
	w.untar(bytes.NewReader(tree), "tree")
	build := exec.Command("go", "build", "-o", w.path("previous"), "./cmd/runexp")
	build.Dir = w.path("tree")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build at %.7s: %v\n%s", previousBuild, err, out)
	}
	few := []string{"--only", "method=abslrp,attention-rollout,grad-cam,lrp-epsilon,saliency,smoothgrad"}
	w.variation(w.path("previous"), 0,
		append([]string{"run", "previous.yaml", "--store", "store", "--out", "folder"}, few...)...)
	w.reproduces("", few...)
	e := w.run(0,
		append([]string{"run", "previous.yaml", "--store", "empty", "--out", "folder", "--quiet"}, few...)...)
	if !reproduced.MatchString(e.stdout) {
		t.Errorf("computed anew, the folder isn't reproduced: %s", e.stdout)
	}
	w.keepsFormats("previous.yaml", w.path("previous"))
	// The previous build finds its way in a store of this one.
	w.variation(w.path("previous"), 0,
		append([]string{"run", "previous.yaml", "--store", "empty", "--out", "older"}, few...)...)
}
