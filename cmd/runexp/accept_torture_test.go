package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tortureYAML has stages of every kind: of files, of models by each of their programs, of the whole set.
const tortureYAML = `name: %s
seed: 4
axes:
  model:
    %s
  method:
    lrp:       {uses: attribute/lrp-epsilon}
    occlusion: {uses: attribute/occlusion, with: {window: 32, stride: 32}}
    random:    {uses: attribute/random}
stages:
  images: {uses: dataset/shapes, with: {count: 4, size: 64}}
  model:  {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: half}}
  maps:   {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  curves: {uses: perturb/ablation, in: {model: model, images: images, maps: maps}, with: {steps: 4}}
  auc:    {uses: score/auc, in: {curves: curves}}
  table:  {uses: report/table, in: {values: auc}, over: all, missing: drop, with: {rows: [method]}}
  sheet:  {uses: report/sheet, in: {maps: maps, images: images}, over: [method], missing: drop, with: {items: 2}}
publish: [table, sheet]
`

// tortures is how often each torture is applied: make torture sets it.
func tortures(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("RUNEXP_TORTURE"))
	if err != nil {
		return 3
	}
	return n
}

// newTorture returns a world with the experiment good.yaml and its net, and a folder
// next to it that nothing may touch.
func newTorture(t *testing.T) *world {
	t.Helper()
	runtimeOrSkip(t)
	w := newWorld(t, map[string]string{
		"work/good.yaml":    fmt.Sprintf(tortureYAML, "good", "good: {path: good.onnx}"),
		"elsewhere/private": "nobody's business",
	})
	b, err := os.ReadFile(net(t, "resnet"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("work/good.onnx", b)
	return w
}

// in runs the command in the world's folder work, for a minute at most.
func (w *world) in(args ...string) ending {
	w.Helper()
	cmd := w.prepare("runexp", args...)
	cmd.Dir = w.path("work")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		w.Errorf("runexp %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	if strings.Contains(errs.String(), "goroutine ") {
		w.Errorf("runexp %s panics:\n%s", strings.Join(args, " "), errs.String())
	}
	return ending{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
}

// elsewhere fails the test if anything changed in the folder that isn't the command's.
func (w *world) elsewhere(t *testing.T) {
	t.Helper()
	names, err := os.ReadDir(w.path("elsewhere"))
	if err != nil || len(names) != 1 || w.read("elsewhere/private") != "nobody's business" {
		t.Errorf("the folder elsewhere was touched: %v, %v", names, err)
	}
}

// TestTortureKills kills runs at random moments: the next goes on, and what is published
// is what an undisturbed run publishes, byte for byte.
func TestTortureKills(t *testing.T) {
	whole := newTorture(t)
	began := time.Now()
	if e := whole.in("run", "good.yaml"); e.code != 0 {
		t.Fatalf("%d: %s", e.code, e.stderr)
	}
	took := time.Since(began)
	rng := rand.New(rand.NewPCG(1, 7))
	for range tortures(t) {
		w := newTorture(t)
		for range 1 + rng.IntN(4) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(took))))
			cmd := w.prepare("runexp", "run", "good.yaml")
			cmd = exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
			cmd.Dir, cmd.Env = w.path("work"), append(os.Environ(), w.env...)
			_ = cmd.Run() // killed, or done
			cancel()
		}
		if e := w.in("run", "good.yaml"); e.code != 0 {
			t.Errorf("after kills: %d\n%s", e.code, e.stderr)
		}
		same(t, whole.path("work/artifacts"), w.path("work/artifacts"))
	}
}

// TestTortureStore damages the store at random, links and special files included: what the
// next run publishes is the same, and nothing behind a link is read, written or removed.
func TestTortureStore(t *testing.T) {
	whole := newTorture(t)
	if e := whole.in("run", "good.yaml"); e.code != 0 {
		t.Fatalf("%d: %s", e.code, e.stderr)
	}
	rng := rand.New(rand.NewPCG(2, 7))
	w := newTorture(t)
	w.in("run", "good.yaml")
	for range tortures(t) {
		var what []string
		for range 1 + rng.IntN(3) {
			what = append(what, w.damage(rng))
		}
		if err := os.RemoveAll(w.path("work/artifacts")); err != nil {
			t.Fatal(err)
		}
		w.in("cache", "verify")
		e := w.in("run", "good.yaml")
		if e.code != 0 {
			t.Errorf("after %q: %d\n%s", what, e.code, e.stderr)
			if err := os.RemoveAll(w.path("work/.runexp")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		w.in("cache", "gc")
		same(t, whole.path("work/artifacts"), w.path("work/artifacts"))
		w.elsewhere(t)
	}
}

// damage does something to a file or folder of the store, and returns what.
func (w *world) damage(rng *rand.Rand) string {
	w.Helper()
	var paths []string
	store := w.path("work/.runexp/store")
	err := filepath.WalkDir(store, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != store {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil || len(paths) == 0 {
		w.Fatalf("no store: %v", err)
	}
	path := paths[rng.IntN(len(paths))]
	info, err := os.Lstat(path)
	if err != nil {
		w.Fatal(err)
	}
	kind := rng.IntN(9)
	if info.Mode().IsRegular() && kind < 3 {
		os.Chmod(path, 0o600)
		b, err := os.ReadFile(path)
		if err != nil {
			w.Fatal(err)
		}
		switch {
		case kind == 0 && len(b) > 0:
			b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		case kind == 1 && len(b) > 0:
			b = b[:rng.IntN(len(b))]
		default:
			b = append(b, "more than there was"...)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			w.Fatal(err)
		}
		return fmt.Sprintf("other bytes %d in %s", kind, path)
	}
	if err := os.RemoveAll(path); err != nil {
		w.Fatal(err)
	}
	what := "nothing"
	switch kind {
	case 3:
		what, err = "a folder", os.Mkdir(path, 0o777)
	case 4:
		what, err = "a link elsewhere", os.Symlink(w.path("elsewhere"), path)
	case 5:
		what, err = "a link to a file", os.Symlink(w.path("elsewhere/private"), path)
	case 6:
		what, err = "a dangling link", os.Symlink(w.path("nowhere"), path)
	case 7:
		what, err = "a pipe", syscall.Mkfifo(path, 0o666)
	case 8:
		what, err = "a device", os.Symlink("/dev/zero", path)
	}
	if err != nil {
		w.Fatal(err)
	}
	return what + " in the place of " + path
}

// TestTortureModels runs experiments with a model that was altered at random next to one
// that is as it was: whatever becomes of the former, the latter's cells are done, and an
// experiment with it alone is published byte for byte as it was.
func TestTortureModels(t *testing.T) {
	w := newTorture(t)
	if e := w.in("run", "good.yaml"); e.code != 0 {
		t.Fatalf("%d: %s", e.code, e.stderr)
	}
	if err := os.Rename(w.path("work/artifacts/good"), w.path("undisturbed")); err != nil {
		t.Fatal(err)
	}
	w.write("work/bad.yaml",
		fmt.Appendf(nil, tortureYAML, "bad", "bad: {path: bad.onnx}\n    good: {path: good.onnx}"))
	rng := rand.New(rand.NewPCG(3, 7))
	good := w.read("work/good.onnx")
	for round := range tortures(t) {
		b := []byte(good)
		head := len(b) // the nodes come before the weights
		if i := bytes.Index(b, []byte("weight")); i > 0 && round%4 > 0 {
			head = min(len(b), i+3000)
		}
		for range 1 + rng.IntN(6) {
			at := rng.IntN(head)
			switch rng.IntN(3) {
			case 0:
				b[at] = byte(rng.IntN(256))
			case 1:
				b[at] ^= 1 << rng.IntN(8)
			case 2:
				copy(b[at:], []byte{0xff, 0xff, 0xff, 0x7f}[:min(4, len(b)-at)])
			}
		}
		w.write("work/bad.onnx", b)
		e := w.in("run", "bad.yaml", "--json", "--partial")
		if e.code == exitBug && strings.Contains(e.stderr, "a run goes on") {
			// A program derived from the model crashed, which ends one run.
			e = w.in("run", "bad.yaml", "--json", "--partial")
		}
		if e.code != 0 && e.code != 1 {
			t.Errorf("round %d: exit code %d\n%s", round, e.code, e.stderr)
		}
		if _, err := os.Stat(w.path("work/artifacts/bad/README.md")); err != nil {
			t.Errorf("round %d: nothing is published of the good model: %v", round, err)
		}
		os.RemoveAll(w.path("work/artifacts"))
		if e := w.in("run", "good.yaml"); e.code != 0 {
			t.Errorf("round %d: %d\n%s", round, e.code, e.stderr)
		}
		same(t, w.path("undisturbed"), w.path("work/artifacts/good"))
		w.elsewhere(t)
	}
}
