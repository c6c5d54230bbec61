package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faultsYAML has one good net next to another, which is what the tests are about.
const faultsYAML = `name: faults
axes:
  model:
    good: {path: good.onnx}
    other: {path: OTHER.onnx}
  method:
    saliency: {uses: attribute/saliency}
    ig: {uses: attribute/integrated-gradients}
stages:
  images: {uses: dataset/shapes, with: {count: 4, size: 32}}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: unit}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
publish: [mass]
`

// newFaults returns a world whose experiment has one of the nets of testdata/nets.
func newFaults(t testing.TB, other string) *world {
	t.Helper()
	runtimeOrSkip(t)
	w := newWorld(t, map[string]string{"faults.yaml": strings.ReplaceAll(faultsYAML, "OTHER", other)})
	for _, name := range []string{"good", other} {
		b, err := os.ReadFile(filepath.Join("testdata", "nets", name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		w.write(name+".onnx", b)
	}
	return w
}

// failed returns why cells failed, by cell.
func (e ending) failed(t testing.TB) map[string]string {
	t.Helper()
	why := map[string]string{}
	for _, v := range e.events(t) {
		if v.Event == "failed" {
			why[v.Cell] = v.Error
		}
	}
	return why
}

// What a model's file does when it is met for the first time ends none of the commands: it
// costs the cells of this model, and check reports why, with the place in the experiment.
func TestFaultsOfModels(t *testing.T) {
	for name, c := range map[string]struct{ env, why string }{
		"divide": {"", "SIGFPE, an integer division by zero"},
		"branch": {"", "SIGFPE, an integer division by zero"},
		"loop":   {"RUNEXP_MODEL_TIME=500ms", "takes more than 500ms of processor time"},
		"memory": {"RUNEXP_MODEL_MEMORY=0.4", "takes more than 0.4 GB of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFaults(t, name)
			w.env = []string{c.env}
			e := w.run(1, "run", "faults.yaml", "--json")
			if why := e.failed(t); len(why) != 1 || !strings.Contains(why["model[model=other]"], c.why) {
				t.Errorf("failed: %v, want one of %q", why, c.why)
			}
			if done := strings.Join(e.executed(t), " "); !strings.Contains(done,
				"mass[method=ig,model=good] mass[method=saliency,model=good]") {
				t.Errorf("the good model's cells aren't among %s", done)
			}
			if name == "memory" {
				return // which tells nothing about the model
			}
			e = w.run(2, "check", "faults.yaml")
			if !strings.Contains(e.stderr, "faults.yaml:5:") &&
				!strings.Contains(e.stderr, "faults.yaml:11:") || !strings.Contains(e.stderr, c.why) ||
				strings.Contains(e.stderr, "goroutine") {
				t.Errorf("check reports %s", e.stderr)
			}
			if e = w.run(0, "inspect", name+".onnx"); !strings.Contains(e.stdout, c.why) {
				t.Errorf("inspect reports %s", e.stdout)
			}
		})
	}
}

// A fault of a program that is derived from a model ends a run, with a sentence. The next
// one finishes what isn't the model's, and so does each after it.
func TestFaultsOfPrograms(t *testing.T) {
	w := newFaults(t, "dark")
	// One worker has all images in a batch: the rows that fill up another would be dark.
	one := []string{"run", "faults.yaml", "--devices", "cpu:0", "--json"}
	e := w.run(exitBug, one...)
	if !strings.Contains(e.stderr, "SIGFPE") || !strings.Contains(e.stderr, "same command") ||
		strings.Contains(e.stderr, "goroutine") {
		t.Errorf("the first run reports %s", e.stderr)
	}
	for range 2 {
		e := w.run(1, one...)
		if why := e.failed(t); len(why) != 1 ||
			!strings.Contains(why["maps[method=ig,model=other]"], "SIGFPE, an integer division by zero") {
			t.Errorf("failed: %v", why)
		}
	}
	// All but the cell that failed, and what needs it, is as without that.
	alone := newFaults(t, "dark")
	for _, w := range []*world{alone, w} {
		w.run(0, append(one, "--only", "method=saliency", "--out", "out")...)
	}
	same(t, alone.path("out"), w.path("out"))
}

// What has been met isn't met again: no process is started for models in the store.
func TestNoWorkerWithoutWork(t *testing.T) {
	w := newFaults(t, "good")
	w.run(0, "run", "faults.yaml")
	w.env = []string{"RUNEXP_MODEL_TIME=this would be an error"}
	w.run(0, "run", "faults.yaml")
	if files, _ := filepath.Glob(w.path(".runexp/store/running/*")); len(files) > 0 {
		t.Errorf("a run that computed nothing left %s", files)
	}
	if e := w.run(1, "run", "faults.yaml", "--force", "model"); !strings.Contains(e.stderr,
		"give a positive duration, such as 10m") {
		t.Errorf("a worker was started: %s", e.stderr)
	}
}

// A run that somebody killed while it used models isn't one that a fault ended: the next
// publishes what it would have, and leaves nothing for the one after it.
func TestKilledWhileModelsRan(t *testing.T) {
	whole := newFaults(t, "good")
	whole.run(0, "run", "faults.yaml")
	w := newFaults(t, "good")
	left := 0
	for n := range 8 {
		cmd := w.prepare("runexp", "run", "faults.yaml", "--chunk", "1", "--force", "maps")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(30*(n+1)) * time.Millisecond)
		cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		files, _ := filepath.Glob(w.path(".runexp/store/running/*"))
		left = max(left, len(files))
	}
	t.Logf("%d killed runs left a file", left)
	w.run(0, "run", "faults.yaml")
	same(t, whole.path("artifacts"), w.path("artifacts"))
	w.run(0, "run", "faults.yaml", "--force", "maps") // one with nothing to do doesn't look
	same(t, whole.path("artifacts"), w.path("artifacts"))
	if files, _ := filepath.Glob(w.path(".runexp/store/running/*")); len(files) > 0 {
		t.Errorf("a run that ended well left %s", files)
	}
}
