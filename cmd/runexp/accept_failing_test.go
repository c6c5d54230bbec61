package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A failed cell costs what follows from it and nothing else: the rest finishes. Asked for, it is published:
// what stood there before stays, and README.md reports the failure. Otherwise the folder stays as it is.
func TestKeepGoing(t *testing.T) {
	w, whole := newTwo(t), newTwo(t)
	whole.run(0, "run", two)
	w.run(0, "run", two)
	photo := w.read("experiments/photos/b.bmp")
	w.write("experiments/photos/b.bmp", []byte("BM, and no picture"))
	w.write(two, []byte(strings.Replace(twoYAML, "count: 3", "count: 4", 1)))

	if e := w.run(1, "run", two); !strings.Contains(e.stderr, "table: done") {
		t.Errorf("the rest doesn't finish:\n%s", e.stderr)
	}
	same(t, whole.path("artifacts"), w.path("artifacts"))

	e := w.run(1, "run", two, "--partial")
	for _, report := range []string{
		`(?m)^\[\d+/\d+\] photos: failed.*b\.bmp`, `noise: blocked by photos`, `sheet: blocked by photos`,
		`(?m)^failed: photos: .*b\.bmp.*\n1 cell failed, 2 blocked$`,
	} {
		if !regexp.MustCompile(report).MatchString(e.stderr) {
			t.Errorf("stderr doesn't report %s:\n%s", report, e.stderr)
		}
	}
	if w.read("artifacts/two/items/mass.csv") == whole.read("artifacts/two/items/mass.csv") {
		t.Error("what could be computed isn't published")
	}
	if w.read("artifacts/two/figures/sheet.png") != whole.read("artifacts/two/figures/sheet.png") {
		t.Error("the figure that couldn't be computed changed")
	}
	if text := w.read("artifacts/two/README.md"); !strings.Contains(text, "photos") ||
		!regexp.MustCompile(`(?i)fail`).MatchString(text) {
		t.Errorf("README.md doesn't say what failed:\n%s", text)
	}
	before := w.read("artifacts/two/README.md")
	wantCells(t, "the same again", w.run(1, "run", two, "--partial", "--json").executed(t), "")
	if w.read("artifacts/two/README.md") != before {
		t.Error("the same failure again changes README.md")
	}
	w.run(1, "verify", two)

	w.write("experiments/photos/b.bmp", []byte(photo))
	w.write(two, []byte(twoYAML))
	w.run(0, "run", two)
	same(t, whole.path("artifacts"), w.path("artifacts"))
	w.run(0, "verify", two)
}

// --fail-fast begins nothing after the first failure. One worker makes it known what comes first.
func TestFailFast(t *testing.T) {
	const text = `name: fast
axes: {n: [%s]}
stages:
  photos: {uses: dataset/folder, with: {path: none}}
  images: {uses: dataset/shapes, matrix: [n], with: {count: 2, size: 16, seed: "${n}"}}
publish: [images]
`
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprint(i))
	}
	w := newWorld(t, map[string]string{"fast.yaml": fmt.Sprintf(text, strings.Join(ids, ", "))})
	if got := len(w.run(1, "run", "fast.yaml", "--fail-fast", "--json").executed(t)); got >= 40 {
		t.Errorf("--fail-fast executed %d cells", got)
	}
	if got := len(w.run(1, "run", "fast.yaml", "--json").executed(t)); got == 0 {
		t.Error("without --fail-fast nothing more is executed")
	}
}

func TestExitCodesOfCommands(t *testing.T) {
	w := newTwo(t)
	w.write("bad.yaml", []byte("name: bad\nstages:\n  a: {uses: dataset/shape}\n"))
	for _, tc := range []struct {
		code   int
		args   string
		report string
	}{
		{2, "run", "run needs an experiment file"},
		{2, "run bad.yaml", `bad.yaml:3:13: stages.a.uses: unknown stage "dataset/shape"`},
		{2, "run none.yaml", `none.yaml`},
		{2, "run " + two + " --sett x=1", `did you mean "--set"?`},
		{2, "run " + two + " --devices gpu", `unknown device "gpu"`},
		{2, "run " + two + " --only method=rise", "rise"},
		{2, "get " + two + " nothing -o out", `no stage is called "nothing"`},
		{3, "run " + two + " --store experiments/two.yaml", "is a file, not a folder"},
		{3, "diff artifacts/two nowhere", "artifacts/two"},
		{5, "plan " + two + " --check", ""},
		{0, "run " + two, ""},
		{0, "plan " + two + " --check", ""},
	} {
		e := w.command("runexp", strings.Fields(tc.args)...)
		if e.code != tc.code || !strings.Contains(e.stderr, tc.report) {
			t.Errorf("runexp %s: exit code %d, want %d, and on stderr %q:\n%s", tc.args, e.code, tc.code,
				tc.report, e.stderr)
		}
	}
}

// A second interrupt ends the run at once, in whatever it does.
func TestSecondInterrupt(t *testing.T) {
	runtimeOrSkip(t)
	w := newWorld(t, map[string]string{"long.yaml": fmt.Sprintf(`name: long
stages:
  images: {uses: dataset/shapes, with: {count: 64, size: 64}}
  model: {uses: model/onnx, with: {path: %q, preset: half}}
  maps: {uses: attribute/rise, in: {model: model, images: images}, with: {masks: 8000}}
publish: [maps]
`, net(t, "resnet"))})
	cmd := w.prepare("runexp", "run", "long.yaml", "--json", "--chunk", "64")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var second time.Time
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch text := lines.Text(); {
		case strings.HasPrefix(text, `{"event":"started","cell":"maps"`):
			cmd.Process.Signal(os.Interrupt)
		case strings.HasPrefix(text, `{"event":"draining"`):
			second = time.Now()
			cmd.Process.Signal(os.Interrupt)
		}
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGINT) {
		t.Errorf("exit code %d, want 130", code)
	}
	if second.IsZero() {
		t.Fatal("the first interrupt didn't drain")
	}
	// 64 images with 8000 masks each take minutes.
	if took := time.Since(second); took > 20*time.Second {
		t.Errorf("the second interrupt was answered after %v", took)
	}
	w.run(0, "cache", "verify")
}
