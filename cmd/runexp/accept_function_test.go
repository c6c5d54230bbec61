package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// numPy lets the interpreter find the NumPy that make deps installs.
func (w *world) numPy() {
	w.Helper()
	root, err := stagetest.Root()
	if err != nil {
		w.Fatal(err)
	}
	w.env = append(w.env, "PYTHONPATH="+filepath.Join(root, "lib", "python"))
	cmd := exec.Command("python3", "-c", "import numpy")
	cmd.Env = append(os.Environ(), w.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		stagetest.Lacks(w, "Python has no NumPy, which make deps installs: "+string(out))
	}
}

// TestFunctions: nothing of a file in Python is run unless the command line allows it; with its leave results
// are kept, and an edited file costs its own cells alone.
func TestFunctions(t *testing.T) {
	runtimeOrSkip(t)
	w := newWorld(t, map[string]string{"code/first.py": functionCode, "code/second.py": functionCode,
		"x.yaml": strings.Replace(functionExperiment, "NET", net(t, "vgg"), 1)})
	w.env = append(w.env, "XDG_CONFIG_HOME="+w.path("none"))
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
	w.numPy()
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

// TestPermission: the user's own configuration allows the functions of experiments in some folders, and
// nothing that lies in the experiment's own folder or repository does, wherever variables or links lead.
func TestPermission(t *testing.T) {
	runtimeOrSkip(t)
	home := newWorld(t, nil)
	text := strings.Replace(functionExperiment, "NET", net(t, "vgg"), 1) + "publish: [table]\n"
	text = strings.Replace(text, "publish", "  table: {uses: report/table, in: {values: first}, over: all, "+
		"with: {rows: [method]}}\npublish", 1)
	w := newWorld(t, map[string]string{"study/code/first.py": functionCode, "study/x.yaml": text,
		"study/code/second.py": functionCode})
	w.numPy()
	config := func(in *world, text string) {
		in.write(configName, []byte(text))
		w.env = append(w.env, "XDG_CONFIG_HOME="+in.dir)
	}
	refused := func(why string) {
		t.Helper()
		e := w.run(2, "check", "study/x.yaml")
		for _, want := range []string{"code/first.py:total wants to run code in Python", why,
			"hint: read first.py, and allow it for this command by --allow-python"} {
			if !strings.Contains(e.stderr, want) {
				t.Errorf("want %q:\n%s", want, e.stderr)
			}
		}
		if _, err := os.Stat(w.path("study/code/imported")); err == nil {
			t.Fatal("a file was imported without leave")
		}
	}
	file := home.path(configName)
	line := `, or for good by the line "allow-python: [` + w.path("study") + `]" in ` + file
	config(home, "")
	refused(line)
	config(home, "allow-python: [/nowhere, "+w.path("stud")+", "+w.path("study/x")+"]\n")
	refused(line)
	config(home, "allow-python: ["+w.path("study/code")+"]\n")
	refused(line) // an experiment elsewhere may give them parameters that nobody thought of
	config(home, "allow-python: [study]\n")
	refused(file + `: allow-python: "study" isn't an absolute path`)
	config(home, "allow_python: [/]\n")
	refused("field allow_python not found")
	config(home, "allow-python: "+w.dir+"\n")
	refused(`it may have the line "allow-python: [FOLDER, FOLDER]"`)

	all := "allow-python: [" + w.dir + "]\n"
	const own = "doesn't count, since the experiment's own folder "
	config(&world{TB: t, dir: w.path("study")}, all)
	refused(own + w.path("study"))
	w.write(".git/HEAD", nil)
	config(w, all)
	refused(own + w.dir)
	w.env = append(w.env, "XDG_CONFIG_HOME="+home.dir)
	w.write("theirs.yaml", []byte(all))
	for _, err := range []error{os.Remove(file), os.Symlink(w.path("theirs.yaml"), file)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(own + w.dir)

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.run(0, "run", "study/x.yaml", "--allow-python")
	w.run(0, "verify", "study/x.yaml", "--allow-python")
	w.run(2, "verify", "study/x.yaml")
	config(home, all)
	w.run(0, "verify", "study/x.yaml")
	page := w.read("artifacts/functions/README.md")
	if err := os.RemoveAll(w.path("artifacts")); err != nil {
		t.Fatal(err)
	}
	w.run(0, "run", "study/x.yaml")
	if now := w.read("artifacts/functions/README.md"); now != page || !strings.Contains(page,
		"runexp run study/x.yaml --allow-python") {
		t.Errorf("by the configuration, the folder says:\n%s", now)
	}
	if e := w.run(0, "doctor"); !strings.Contains(e.stdout, "in "+w.dir+" by "+file) {
		t.Errorf("doctor says:\n%s", e.stdout)
	}
	w.env = append(w.env, "HOME="+w.dir)
	config(home, "allow-python: [~/study]\n")
	w.run(0, "check", "study/x.yaml")
	w.write("elsewhere/first.py", []byte(functionCode))
	for _, err := range []error{os.RemoveAll(w.path("study/code")), os.Mkdir(w.path("study/code"), 0o777),
		os.Symlink(w.path("elsewhere/first.py"), w.path("study/code/first.py")),
		os.Symlink(w.path("elsewhere/first.py"), w.path("study/code/second.py"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(`, or for good by the line "allow-python: [` + w.dir + `]" in ` + file)
}

// TestInterruptedImport: the first signal ends a command that waits for a file in Python to be imported, and
// the process that imports it. Nothing stays among the temporary files, even if the command is killed.
func TestInterruptedImport(t *testing.T) {
	w := newWorld(t, map[string]string{"x.yaml": strings.Replace(functionExperiment, "NET", net(t, "vgg"), 1),
		"code/second.py": functionCode, "code/first.py": "import os, time\n" +
			"open('pid', 'w').write(str(os.getpid()))\nos.rename('pid', 'importing')\ntime.sleep(1000)\n"})
	if err := os.Mkdir(w.path("tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+w.path("tmp"))
	for _, tt := range []struct {
		verb string
		with os.Signal
	}{{"check", os.Interrupt}, {"run", os.Interrupt}, {"plan", syscall.SIGKILL}} {
		cmd := w.prepare("runexp", tt.verb, "x.yaml", "--allow-python")
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pid int
		eventually(t, 20*time.Second, func() bool {
			b, err := os.ReadFile(w.path("code/importing"))
			pid, _ = strconv.Atoi(string(b))
			return err == nil
		})
		start := time.Now()
		if err := cmd.Process.Signal(tt.with); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // a signal ended it
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s took %v to end:\n%s", tt.verb, took, &said)
		}
		if tt.with == os.Interrupt && (cmd.ProcessState.ExitCode() != 130 || strings.Contains(said.String(),
			"first.py:total")) {
			t.Errorf("%s: exit code %d:\n%s", tt.verb, cmd.ProcessState.ExitCode(), &said)
		}
		eventually(t, 10*time.Second, func() bool { return syscall.Kill(pid, 0) != nil })
		if err := os.Remove(w.path("code/importing")); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(w.path("tmp/runexp*")); err != nil || len(left) > 0 {
			t.Errorf("%s left %v, %v", tt.verb, left, err)
		}
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, limit time.Duration, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v", limit)
		}
	}
}

// TestUndefinedMaps: where a method in Python has no map, scores of it are undefined, of metrics in Go and in
// Python; they are counted in the run's messages and in the folder, and are in no mean.
func TestUndefinedMaps(t *testing.T) {
	w := newWorld(t, map[string]string{"f.py": `
import numpy as np
from runexp_xai.stage import attribute, metric

@attribute()
def edges(image):
    grey = image.mean(axis=0)
    if image[0, 0, 0] * 255 % 2 < 1:
        return np.full(grey.shape, np.nan)
    return np.abs(np.gradient(grey)).sum(axis=0)

@metric()
def above(map, mask):
    return ((map > 0) & (mask > 0)).sum() / (mask > 0).sum()
`, "x.yaml": `
name: undefined
stages:
  images: {uses: dataset/shapes, with: {count: 6, seed: 1}}
  maps: {uses: "f.py:edges", in: {images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  above: {uses: "f.py:above", in: {maps: maps, masks: images.masks}}
  table:
    uses: report/table
    in: {values: {metric: {mass: mass, above: above}}}
    over: all
    with: {rows: [metric]}
publish: [table]
`})
	w.numPy()
	e := w.run(0, "run", "x.yaml", "--allow-python")
	page := w.read("artifacts/undefined/README.md")
	if !strings.Contains(e.stderr,
		`warning: maps: 5 items, such as "a-000000": 4096 of 4096 values of its map are not numbers`) ||
		!strings.Contains(page, "Undefined, and in no mean: `mass` 5 of 6, `above` 5 of 6.") {
		t.Errorf("the run says:\n%s\nand the folder:\n%s", e.stderr, page)
	}
	if got := w.read("artifacts/undefined/items/above.csv"); strings.Count(got, "undefined") != 5 ||
		!strings.Contains(got, ",1,") {
		t.Errorf("scores:\n%s", got)
	}
}
