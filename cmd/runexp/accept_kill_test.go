package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages/stagetest"
)

// killsYAML is many small cells, so that a kill finds the run anywhere.
const killsYAML = `name: kills
axes:
  seed: [1, 2, 3, 4, 5]
  method:
    constant: {uses: attribute/constant}
    uniform: {uses: attribute/random}
    normal: {uses: attribute/random, with: {distribution: normal}}
stages:
  images: {uses: dataset/shapes, matrix: [seed], with: {count: 6, size: 24, seed: "${seed}"}}
  maps: {uses: "${method}", matrix: [method], in: {images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  table: {uses: report/table, in: {values: mass}, over: all, with: {rows: [method], columns: [seed]}}
  sheet: {uses: report/sheet, in: {maps: maps, images: images}, over: [method], only: [{seed: "1"}], with: {items: 1}}
publish: [table, sheet]
`

func newKills(t testing.TB) *world { return newWorld(t, map[string]string{"kills.yaml": killsYAML}) }

// killed reports whether a signal of this kind ended the process.
func killed(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGKILL }

// killAfter runs the experiment and kills it some time after n cells of it were executed; a number beyond the
// last kills it while it publishes. It returns whether the kill came in time.
func (w *world) killAfter(n int, later time.Duration) bool {
	w.Helper()
	cmd := w.prepare("runexp", "run", "kills.yaml", "--json", "--chunk", "2")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for done := 0; done < n && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), `{"event":"done"`) {
			done++
		} else if strings.HasPrefix(lines.Text(), `{"event":"finished"`) {
			break
		}
	}
	time.AfterFunc(later, func() { cmd.Process.Kill() })
	for lines.Scan() {
	}
	err = cmd.Wait()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); killed(s) {
		return true
	}
	if err != nil {
		w.Errorf("a run that went on after kills: %v\n%s", err, &errs)
	}
	return false
}

// dies runs the experiment up to the n-th point inside a write of the store.
func (w *world) dies(n int) bool {
	w.Helper()
	cmd := w.prepare("runexp-dying", "run", "kills.yaml", "--chunk", "2")
	cmd.Env = append(cmd.Env, "DIE="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); killed(s) {
		return true
	}
	if err != nil {
		w.Errorf("a run that went on after kills: %v\n%s", err, out)
	}
	return false
}

// completes runs the experiment to its end and compares with an undisturbed run.
func (w *world) completes(t *testing.T, whole *world, all int) (executed int) {
	t.Helper()
	e := w.run(0, "run", "kills.yaml", "--json")
	executed = len(e.executed(t))
	if executed >= all {
		t.Errorf("the last run executed all of the %d cells", all)
	}
	same(t, whole.path("artifacts"), w.path("artifacts"))
	if e := w.run(0, "cache", "verify"); e.stdout != "every object has the digest that its name is\n" ||
		e.stderr != "" {
		t.Errorf("cache verify: %s%s", e.stdout, e.stderr)
	}
	if e := w.run(0, "run", "kills.yaml", "--json"); len(e.executed(t)) > 0 {
		t.Errorf("after the last run, another executed %s", e.executed(t))
	}
	return executed
}

// A run may be killed at any moment, again and again: the next goes on, and what
// is published in the end is what it would have been, byte for byte.
func TestKills(t *testing.T) {
	const round = 5 // kills before a run may complete
	kills := slices.Max(append(stagetest.Sample(t, 3, []int{70}), 25))
	whole := newKills(t)
	whole.env = []string{"DIE=0"}
	e := whole.variation("runexp-dying", 0, "run", "kills.yaml", "--chunk", "2")
	m := regexp.MustCompile(`points: (\d+)`).FindStringSubmatch(e.stderr)
	if m == nil {
		t.Fatalf("no points: %s", e.stderr)
	}
	points, _ := strconv.Atoi(m[1])
	other := newKills(t)
	all := len(other.run(0, "run", "kills.yaml", "--json", "--chunk", "2").executed(t))
	same(t, whole.path("artifacts"), other.path("artifacts"))
	if points < 100 || all < 20 {
		t.Fatalf("%d points in %d cells: too few to die at", points, all)
	}

	t.Run("random", func(t *testing.T) {
		t.Parallel()
		rng := rand.New(rand.NewPCG(1, 2))
		rounds(t, whole, all, kills, round, func(w *world, n int) bool {
			later := time.Duration(rng.IntN(1500)) * time.Microsecond
			if n == 0 { // so that there's something to go on from
				return w.killAfter(1+rng.IntN(6), later)
			}
			return w.killAfter(rng.IntN(6), later)
		})
	})
	t.Run("inside a write", func(t *testing.T) {
		t.Parallel()
		rng := rand.New(rand.NewPCG(3, 4))
		rounds(t, whole, all, kills/2, round, func(w *world, n int) bool {
			if n == 0 {
				return w.dies(points/8 + rng.IntN(points/4))
			}
			return w.dies(1 + rng.IntN(points/6))
		})
	})
	t.Run("while publishing", func(t *testing.T) {
		t.Parallel()
		whilePublishing(t, whole, all)
	})
	t.Run("before each point of the last write", func(t *testing.T) {
		t.Parallel()
		w := newKills(t)
		for n := points - 12; n <= points; n++ {
			w.dies(n) // the first goes almost to the end, the others begin there
		}
		for n := 1; n <= 12; n++ {
			w.dies(n)
		}
		w.completes(t, whole, all)
	})
}

// whilePublishing kills runs that have nothing left to do but to publish, at moments
// spread over the time that it takes.
func whilePublishing(t *testing.T, whole *world, all int) {
	const kills = 60
	w := newKills(t)
	w.run(0, "run", "kills.yaml", "--quiet", "--out", "elsewhere")
	took := w.publishing()
	unfinished := 0
	for i := range kills {
		if i%4 == 0 {
			if err := os.RemoveAll(w.path("artifacts")); err != nil {
				t.Fatal(err)
			}
		}
		w.killAfter(all, time.Duration(i)*took/kills)
		temporary, err := filepath.Glob(w.path("artifacts/kills/*/.publish-*"))
		if err != nil {
			t.Fatal(err)
		}
		unfinished += len(temporary)
		if i%4 == 3 {
			w.completes(t, whole, all)
		}
	}
	t.Logf("publishing takes %v; kills left %d unfinished files", took, unfinished)
}

// publishing runs an experiment that is all in the store, and returns how long it
// takes from its last event to its end.
func (w *world) publishing() time.Duration {
	w.Helper()
	cmd := w.prepare("runexp", "run", "kills.yaml", "--json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	var finished time.Time
	for lines := bufio.NewScanner(out); lines.Scan(); {
		finished = time.Now()
	}
	took := time.Since(finished)
	if err := cmd.Wait(); err != nil {
		w.Fatal(err)
	}
	return took
}

// rounds kills runs on a few stores one after another until there were enough kills.
func rounds(t *testing.T, whole *world, all, kills, round int, kill func(w *world, n int) bool) {
	var executed []string
	for done := 0; done < kills; {
		w := newKills(t)
		for n := range round {
			if kill(w, n) {
				done++
			}
			if t.Failed() {
				return
			}
		}
		executed = append(executed, fmt.Sprint(w.completes(t, whole, all)))
	}
	t.Logf("%d kills; of %d cells the last runs executed %s", kills, all, strings.Join(executed, ", "))
}

// Two runs at once on one store, and in one folder, both win.
func TestTwoRunsAtOnce(t *testing.T) {
	whole := newKills(t)
	whole.run(0, "run", "kills.yaml")
	for range 3 {
		w := newKills(t)
		ends := make(chan ending, 2)
		for range 2 {
			go func() { ends <- w.command("runexp", "run", "kills.yaml", "--chunk", "1") }()
		}
		for range 2 {
			if e := <-ends; e.code != 0 {
				t.Errorf("one of two runs at once: exit code %d\n%s", e.code, e.stderr)
			}
		}
		same(t, whole.path("artifacts"), w.path("artifacts"))
		w.run(0, "cache", "verify")
		wantCells(t, "after both", w.run(0, "run", "kills.yaml", "--json").executed(t), "")
	}
}
