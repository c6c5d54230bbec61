//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// bounded runs a command under a limit of memory, and reports whether the kernel ended any of its processes.
type bounded func(t *testing.T, cmd *exec.Cmd) (killed bool)

// TestHungryModel holds that a model whose programs take more memory than there is costs its own cells alone,
// and says what bounds it: here its one Expand makes 144 MB an image.
func TestHungryModel(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: it takes gigabytes of memory")
	}
	alone := newFaults(t, "greedy")
	text := []byte(strings.Replace(alone.read("faults.yaml"), "count: 4", "count: 16", 1))
	alone.write("faults.yaml", text)
	alone.run(0, "run", "faults.yaml", "--only", "model=good", "--out", "out")
	for name, c := range stagetest.SampleOf(t, 2, map[string]struct {
		under func(t *testing.T) bounded
		says  string
	}{
		"ulimit":        {underUlimit, `all that (ulimit -v leaves|the machine has left|the control group)`},
		"control group": {underGroup, `all that the control group \S+ has left of its`},
	}) {
		t.Run(name, func(t *testing.T) {
			run := c.under(t)
			w := newFaults(t, "greedy")
			w.write("faults.yaml", text)
			cmd := w.prepare("runexp", "run", "faults.yaml", "--json")
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			killed := run(t, cmd)
			e := ending{stdout: out.String(), stderr: errs.String()}
			if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 || killed {
				t.Fatalf("exit code %d, killed: %v: %s", code, killed, e.stderr)
			}
			done := e.executed(t)
			for _, cell := range []string{"mass[method=ig,model=good]", "mass[method=saliency,model=good]"} {
				if !slices.Contains(done, cell) {
					t.Errorf("%s isn't among %s", cell, done)
				}
			}
			says := regexp.MustCompile(`(needs|more than) [0-9.]+ [GM]B.* ` + c.says + `|out of memory`)
			for cell, why := range e.failed(t) {
				t.Logf("%s: %s", cell, why)
				if !strings.Contains(cell, "model=other") || !says.MatchString(why) {
					t.Errorf("%s failed: %s", cell, why)
				}
			}
			w.run(0, "run", "faults.yaml", "--only", "model=good", "--out", "out")
			same(t, alone.path("out"), w.path("out"))
		})
	}
}

// underUlimit bounds addresses: what the library asks for beyond them, it doesn't get.
func underUlimit(*testing.T) bounded {
	return func(t *testing.T, cmd *exec.Cmd) bool {
		underShell(cmd, "ulimit -v 3000000")
		_ = cmd.Run() // its exit code says how it ended
		return false
	}
}

// underGroup makes a control group of 0.9 GB, of whichever version this process may.
func underGroup(t *testing.T) bounded {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip("skipped: there are no control groups")
	}
	v1 := regexp.MustCompile(`(?m)^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$`).FindSubmatch(own)
	v2 := regexp.MustCompile(`(?m)^0::(.*)$`).FindSubmatch(own)
	var parent, limit, kills string
	switch {
	case v1 != nil:
		parent, limit, kills = filepath.Join("/sys/fs/cgroup/memory", string(v1[1])), "memory.limit_in_bytes",
			"memory.oom_control"
	case v2 != nil:
		parent, limit, kills = filepath.Join("/sys/fs/cgroup", string(v2[1])), "memory.max", "memory.events"
	}
	dir := filepath.Join(parent, fmt.Sprintf("runexp-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Skipf("skipped: this process may make no control group: %v", err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	if err := os.WriteFile(filepath.Join(dir, limit), []byte("900000000"), 0); err != nil {
		t.Skipf("skipped: this process may limit no control group: %v", err)
	}
	return func(t *testing.T, cmd *exec.Cmd) bool {
		underShell(cmd, "echo $$ > "+filepath.Join(dir, "cgroup.procs"))
		_ = cmd.Run() // its exit code says how it ended
		b, _ := os.ReadFile(filepath.Join(dir, kills))
		t.Logf("the control group ended with %q", b)
		return cmd.ProcessState.ExitCode() < 0
	}
}

// underShell has a shell do something before it becomes the command.
func underShell(cmd *exec.Cmd, first string) {
	cmd.Args = append([]string{"sh", "-c", first + ` && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}
