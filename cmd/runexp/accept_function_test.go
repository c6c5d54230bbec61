package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

const functionExperiment = `
name: functions
axes:
  method:
    random: {uses: attribute/random}
    constant: {uses: attribute/constant}
stages:
  images: {uses: dataset/shapes, with: {count: 3, seed: 1}}
  model: {uses: model/onnx, with: {path: NET, preset: half}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  first: {uses: "code/first.py:total", matrix: [method], in: {maps: maps}, with: {power: 2}}
  second: {uses: "code/second.py:total", matrix: [method], in: {maps: maps}}
`

// functionCode is a file that leaves a mark where it is imported.
const functionCode = `
from runexp_xai.stage import metric

open("imported", "a").close()

@metric(direction="lower")
def total(map, power=1):
    return float((map ** power).sum())
`

// TestFunctions: nothing of a file in Python is run unless the command line allows it; with its leave results
// are kept, and an edited file costs its own cells alone.
func TestFunctions(t *testing.T) {
	runtimeOrSkip(t)
	w := newWorld(t, map[string]string{"code/first.py": functionCode, "code/second.py": functionCode,
		"x.yaml": strings.Replace(functionExperiment, "NET", net(t, "vgg"), 1)})
	const wants = "x.yaml:11:17: stages.first.uses: code/first.py:total wants to run code in Python"
	for _, verb := range []string{"check", "plan", "run"} {
		if e := w.run(2, verb, "x.yaml"); !strings.Contains(e.stderr, wants) ||
			!strings.Contains(e.stderr, "--allow-python") {
			t.Errorf("%s says:\n%s", verb, e.stderr)
		}
	}
	if _, err := os.Stat(w.path("code/imported")); err == nil {
		t.Fatal("a file was imported without leave")
	}
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PYTHONPATH="+filepath.Join(root, "lib", "python"))
	cmd := exec.Command("python3", "-c", "import numpy")
	cmd.Env = append(os.Environ(), w.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		stagetest.Lacks(t, "Python has no NumPy, which make deps installs: "+string(out))
	}
	w.run(0, "check", "x.yaml", "--allow-python")
	if _, err := os.Stat(w.path("code/imported")); err != nil {
		t.Error("with leave, nothing was imported")
	}
	run := func() []string { return w.run(0, "run", "x.yaml", "--allow-python", "--json").executed(t) }
	const scores = "second[method=constant] second[method=random]"
	wantCells(t, "the first run", run(), "first[method=constant] first[method=random] images "+
		"maps[method=constant] maps[method=random] model "+scores)
	wantCells(t, "the second run", run(), "")
	w.write("code/second.py", []byte(strings.Replace(functionCode, ".sum()", ".max()", 1)))
	if e := w.run(0, "why", "x.yaml", "second[method=random]", "--allow-python"); !strings.Contains(e.stdout,
		"with.code: ") {
		t.Errorf("why says:\n%s", e.stdout)
	}
	wantCells(t, "the run after an edit", run(), scores)
}
