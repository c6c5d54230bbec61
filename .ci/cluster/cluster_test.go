// Package cluster submits the quickstart to a Slurm of its own while everything that happens on a cluster
// happens: the review folder must be that of one machine, byte for byte. See run.
package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	program    = "/mnt/bin/runexp"
	experiment = "experiments/quickstart.yaml"
	images     = 5 // of the experiment's 24, as all GPUs are the same two cores
	published  = ".runexp/out/quickstart/limit=5"
)

// TestCluster holds that the quickstart, submitted and submitted again whatever happens, becomes the folder
// of one machine.
func TestCluster(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("RUNEXP_CLUSTER"))
	if rounds == 0 {
		t.Skip("a cluster needs namespaces of its own: make test-cluster")
	}
	one := filepath.Join(t.TempDir(), "one")
	copyExperiment(t, one)
	cmd := (&round{dir: one}).command("run", "--quiet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := files(t, filepath.Join(one, published))
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for n := range rounds {
		if !t.Run(fmt.Sprintf("SEED=%d", seed+uint64(n)), func(t *testing.T) {
			newRound(newSlurm(t)).pass(rand.New(rand.NewPCG(seed+uint64(n), 0)), want)
		}) {
			return
		}
	}
}

// A round is an experiment's way to its folder, on a file system of its own.
type round struct {
	*slurm
	dir    string
	shares int
	begun  time.Time
}

func newRound(s *slurm) *round {
	s.Helper()
	r := &round{slurm: s, dir: "/mnt/round", begun: time.Now()}
	s.mount(r.dir)
	s.Cleanup(func() {
		if s.Failed() {
			r.show()
		}
		for _, j := range s.queue() {
			s.ask("scancel", "--full", "--signal=KILL", j.id)
			s.ask("scancel", j.id)
		}
	})
	copyExperiment(s, r.dir)
	return r
}

// pass submits until nothing is missing, with faults at first.
func (r *round) pass(x *rand.Rand, want map[string]string) {
	r.Helper()
	r.shares = 4 + x.IntN(9)
	const most = 5
	for n := range most {
		said := r.submit()
		r.say("submission %d, %d shares: %s", n+1, r.shares, said)
		if strings.Contains(said, "all cached") {
			r.compare(want)
			return
		}
		if n < 2 {
			r.trouble(x, 3-2*n)
		}
		r.drained(5 * time.Minute)
		r.calls()
	}
	r.Fatalf("after %d submissions something is missing", most)
}

// trouble has some faults happen while tasks run.
func (r *round) trouble(x *rand.Rand, count int) {
	r.Helper()
	for hits := 0; hits < count; {
		r.until("a task runs", func() bool {
			r.tend()
			return len(r.tasks()) > 0 || len(r.queue()) == 0
		})
		if len(r.queue()) == 0 {
			return
		}
		time.Sleep(time.Duration(x.IntN(4000)) * time.Millisecond)
		f := faults[x.IntN(len(faults))]
		if hit := f.provoke(r, x); hit != "" {
			r.say("%s: %s", f.name, hit)
			hits++
		}
	}
}

// submit submits what is missing, and returns what that prints.
func (r *round) submit() string {
	r.Helper()
	r.until("the controller answers", r.answers)
	r.calls()
	cmd := r.command("submit", "--slurm", "--shares", fmt.Sprint(r.shares), "--", "--time=5")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil && !r.answers():
		return r.submit()
	case err != nil:
		r.Fatalf("submit: %v\n%s", err, out)
	}
	if n, waves := r.calls(), max(1, bytes.Count(out, []byte("close wave"))); n > 5*waves {
		r.Errorf("submit called %d commands of Slurm for %d waves", n, waves)
	}
	return strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), "; ")
}

// command returns a command of runexp on the experiment. Each job gets a GPU; as it is none that computes,
// a variable asks for it in place of an option.
func (r *round) command(verb string, args ...string) *exec.Cmd {
	args = append([]string{verb, experiment, "--limit", fmt.Sprint(images)}, args...)
	cmd := exec.Command(program, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "SBATCH_GRES=gpu:1")
	if r.slurm != nil {
		cmd.Env = append(cmd.Env, "PATH="+r.in("bin")+":"+os.Getenv("PATH"))
	}
	return cmd
}

// compare holds that the folder is that of one machine, and the store sound.
func (r *round) compare(want map[string]string) {
	r.Helper()
	got := files(r, filepath.Join(r.dir, published))
	for name := range want {
		if got[name] != want[name] {
			r.Errorf("%s is another than that of one machine", name)
		}
	}
	if len(got) != len(want) {
		r.Errorf("%d files, want %d", len(got), len(want))
	}
	cmd := exec.Command(program, "cache", "verify")
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Errorf("cache verify: %v\n%s", err, out)
	}
}

func (r *round) say(format string, args ...any) {
	r.Helper()
	r.Logf("%3.0f s  "+format, append([]any{time.Since(r.begun).Seconds()}, args...)...)
}

// show prints the ends of what jobs of a round that failed printed.
func (r *round) show() {
	logs, _ := filepath.Glob(filepath.Join(r.dir, ".runexp/slurm/*.out"))
	for _, log := range logs {
		b, _ := os.ReadFile(log)
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		r.Logf("%s:\n%s", filepath.Base(log), strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
}

// copyExperiment makes a folder that has the quickstart.
func copyExperiment(t testing.TB, dir string) {
	t.Helper()
	const from = "../../experiments/quickstart"
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "experiments"), 0o777),
		os.CopyFS(filepath.Join(dir, "experiments/quickstart"), os.DirFS(from)))
	b, errRead := os.ReadFile(from + ".yaml")
	if err := errors.Join(err, errRead, os.WriteFile(filepath.Join(dir, experiment), b, 0o666)); err != nil {
		t.Fatal(err)
	}
}

// files returns the files of a folder.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
