package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shares runs all of a number of shares, one after another.
func (w *world) shares(of int, args ...string) {
	w.Helper()
	for k := range of {
		w.run(0, append(args, "--share", fmt.Sprintf("%d/%d", k, of))...)
	}
}

// TestSharesNarrowed holds that shares, and what closes them, take overrides as a run does.
func TestSharesNarrowed(t *testing.T) {
	for _, args := range []string{
		"--set images.with.count=4", "--only method=uniform", "--limit 3",
		"--only seed=1,2 --set images.with.size=20 --limit 5",
	} {
		command := append([]string{"run", "kills.yaml"}, strings.Fields(args)...)
		one := newKills(t)
		one.run(0, command...)
		w := newKills(t)
		w.shares(3, command...)
		w.run(0, append(command, "--share", "close")...)
		same(t, one.path(".runexp/out"), w.path(".runexp/out"))
		if e := w.run(0, append(command, "--json")...); len(e.executed(t)) > 0 {
			t.Errorf("%s: a run afterwards executes %v", args, e.executed(t))
		}
	}
	w := newKills(t)
	w.shares(2, "run", "kills.yaml", "--limit", "3")
	if e := w.run(1, "run", "kills.yaml", "--share", "close"); !strings.Contains(e.stderr, " are missing") {
		t.Errorf("a limit's shares are taken for all: %s", e.stderr)
	}
}

// wavesYAML is two waves of many small cells.
const wavesYAML = `name: waves
axes:
  seed: [1, 2, 3, 4]
  method:
    constant: {uses: attribute/constant}
    uniform: {uses: attribute/random}
    normal: {uses: attribute/random, with: {distribution: normal}}
stages:
  images: {uses: dataset/shapes, matrix: [seed], with: {count: 24, size: 24, seed: "${seed}"}}
  maps: {uses: "${method}", matrix: [method], in: {images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  grids: {uses: mosaic/grid, in: {images: images, labels: images.labels}}
  grid-maps: {uses: "${method}", matrix: [method], in: {images: grids}}
  pointing: {uses: score/grid-pointing, in: {maps: grid-maps, cells: grids.cells}}
  table: {uses: report/table, in: {values: mass}, over: all, with: {rows: [method], columns: [seed]}}
  grid-table: {uses: report/table, in: {values: pointing}, over: all, with: {rows: [method], columns: [seed]}}
  sheet: {uses: report/sheet, in: {maps: maps, images: images}, over: [method], only: [{seed: "1"}], with: {items: 1}}
publish: [table, grid-table, sheet]
`

// TestSharesSurvive holds that shares in any order, of which some are killed inside a write, told to stop or
// run twice at once, make the folder of one run, wave by wave.
func TestSharesSurvive(t *testing.T) {
	const of, waves = 8, 2
	files := map[string]string{"waves.yaml": wavesYAML}
	one := newWorld(t, files)
	one.run(0, "run", "waves.yaml")
	rng := rand.New(rand.NewPCG(5, 6))
	killed, drained := 0, 0
	w := newWorld(t, files)
	for wave := range waves {
		for _, k := range rng.Perm(of) {
			share := []string{"run", "waves.yaml", "--chunk", "1", "--share", fmt.Sprintf("%d/%d", k, of)}
			switch k % 3 {
			case 0:
				for range 3 {
					cmd := w.prepare("runexp-dying", share...)
					cmd.Env = append(cmd.Env, fmt.Sprint("DIE=", 1+rng.IntN(150)))
					_ = cmd.Run()
					if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
						killed++
					}
				}
			case 1:
				if w.drain("done", share...) == exitAgain {
					drained++
				}
			}
			ends := make(chan ending, 2)
			for range 2 {
				go func() { ends <- w.command("runexp", share...) }()
			}
			for range 2 {
				if e := <-ends; e.code != 0 {
					t.Errorf("share %d: exit code %d\n%s", k, e.code, e.stderr)
				}
			}
		}
		if e := w.run(0, "run", "waves.yaml", "--share", "close"); wave == 0 &&
			!strings.Contains(e.stderr, "this wave is complete") {
			t.Errorf("closing the first wave says %s", e.stderr)
		}
	}
	same(t, one.path("artifacts"), w.path("artifacts"))
	w.run(0, "cache", "verify")
	if t.Logf("%d killed, %d drained", killed, drained); killed < 3 || drained == 0 {
		t.Error("too few shares were killed or told to stop")
	}
	if e := w.run(0, "run", "waves.yaml", "--json"); len(e.executed(t)) > 0 {
		t.Errorf("a run afterwards executes %v", e.executed(t))
	}
}

// drain starts a command, has it stop at the first event of a kind, and returns its exit code.
func (w *world) drain(event string, args ...string) int {
	w.Helper()
	run := w.prepare("runexp", append(args, "--json")...)
	run.Env = append(run.Env, "GOMAXPROCS=2") // so that not everything has begun
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	sent := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !sent && strings.HasPrefix(lines.Text(), `{"event":"`+event+`"`) {
			sent = true
			if err := run.Process.Signal(syscall.SIGTERM); err != nil {
				w.Fatal(err)
			}
		}
	}
	_ = run.Wait()
	return run.ProcessState.ExitCode()
}

// TestShareAppearsLate holds that closing waits for a share that a file server shows late, and that a signal
// ends the wait with the code that has it queued again.
func TestShareAppearsLate(t *testing.T) {
	one := newKills(t)
	one.run(0, "run", "kills.yaml")
	w := newKills(t)
	w.shares(3, "run", "kills.yaml")
	late, err := filepath.Glob(w.path(".runexp/store/shares/1of3.*"))
	if err != nil || len(late) != 1 {
		t.Fatalf("shares: %v, %v", late, err)
	}
	if err := os.Rename(late[0], w.path("hidden")); err != nil {
		t.Fatal(err)
	}
	// closing closes the wave, does something when it waits, and returns the exit code.
	closing := func(late string, waits func(p *os.Process) error) int {
		cmd := w.prepare("runexp", "run", "kills.yaml", "--share", "close")
		errs, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		waited := false
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			if !waited && strings.HasPrefix(lines.Text(), "waiting for "+late) {
				waited = true
				if err := waits(cmd.Process); err != nil {
					t.Error(err)
				}
			}
		}
		if _ = cmd.Wait(); !waited {
			t.Error("it doesn't wait")
		}
		return cmd.ProcessState.ExitCode()
	}
	stop := func(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
	if code := closing("up to ", stop); code != exitAgain {
		t.Errorf("stopped while it waits, it ends with %d, want %d", code, exitAgain)
	}
	show := func(*os.Process) error { return os.Rename(w.path("hidden"), late[0]) }
	// The first closing has added the other shares, and the second one removes them.
	if code := closing("shares: none is visible", show); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	same(t, one.path("artifacts"), w.path("artifacts"))
}

// TestCloseWaits holds that closing waits for nothing if no items are missing, whatever share was killed, and
// that the shares of an earlier wave don't count as those of the next one.
func TestCloseWaits(t *testing.T) {
	w := newWorld(t, map[string]string{"waves.yaml": wavesYAML})
	w.shares(2, "run", "waves.yaml")
	cmd := w.prepare("runexp-dying", "run", "waves.yaml", "--share", "0/3")
	cmd.Env = append(cmd.Env, "DIE=12")
	_ = cmd.Run()
	if !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatal("the share wasn't killed")
	}
	if e := w.run(0, "run", "waves.yaml", "--share", "close"); strings.Contains(e.stderr, "waiting") {
		t.Errorf("with nothing missing, closing says %s", e.stderr)
	}
	e := w.run(1, "run", "waves.yaml", "--share", "close")
	for _, want := range []string{"waiting for ", " items are missing"} {
		if !strings.Contains(e.stderr, want) {
			t.Errorf("closing a wave without shares doesn't say %q: %s", want, e.stderr)
		}
	}
	w.shares(2, "run", "waves.yaml")
	w.run(0, "run", "waves.yaml", "--share", "close")
}

// TestSharesLack holds that closing tells which items are missing, and of what they failed; and that an item
// that fails in all shares is looked for once only.
func TestSharesLack(t *testing.T) {
	w := sharedPhotos(t)
	w.write("photos/c.bmp", []byte("BM, and nothing else"))
	failed := 0
	for k := range 3 {
		e := w.command("runexp", "run", "photos.yaml", "--share", fmt.Sprintf("%d/3", k))
		if e.code == exitFailed {
			failed++
		} else if e.code != 0 {
			t.Errorf("share %d: exit code %d\n%s", k, e.code, e.stderr)
		}
	}
	if failed != 1 {
		t.Errorf("%d shares failed, want that of one image", failed)
	}
	for range 3 {
		began := time.Now()
		e := w.run(1, "run", "photos.yaml", "--share", "close")
		for _, want := range []string{" items are missing", "failed: images: ", "c.bmp"} {
			if !strings.Contains(e.stderr, want) {
				t.Errorf("closing doesn't say %q: %s", want, e.stderr)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("closing took %v", took)
		}
	}
	w.picture("photos/c.bmp", 7)
	w.run(1, "run", "photos.yaml", "--share", "close") // notes that it changed
	w.shares(2, "run", "photos.yaml")
	w.run(0, "run", "photos.yaml", "--share", "close")
	one := sharedPhotos(t)
	one.picture("photos/c.bmp", 7)
	one.run(0, "run", "photos.yaml")
	same(t, one.path("artifacts"), w.path("artifacts"))
}
