package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/fuse"
	mapstages "github.com/runexp/runexp/stages/maps"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/report"
	"github.com/runexp/runexp/stages/score"
	"github.com/runexp/runexp/stages/stagetest"
)

// The tests in files called accept_ hold what the command promises as a whole,
// from the outside: they run it as a process and look at what it leaves.

// A world is a folder with experiments in it.
type world struct {
	testing.TB
	dir string
	env []string // beyond the test's own
}

// newWorld returns a world in memory where there's such a file system: these tests write, and sync, a lot.
func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := &world{TB: t, dir: scratch(t)}
	for name, text := range files {
		w.write(name, []byte(text))
	}
	return w
}

func scratch(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "runexp-test-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *world) write(name string, b []byte) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o777); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), b, 0o666); err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.Helper()
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

// An ending is how a command ended and what it wrote.
type ending struct {
	code           int // -1 when a signal ended it
	stdout, stderr string
	usage          *syscall.Rusage
}

// command runs a program of the test binary, runexp or one of its variations, or one of the machine's.
func (w *world) command(name string, args ...string) ending {
	w.Helper()
	cmd := w.prepare(name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		w.Fatal(err)
	}
	e := ending{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
	e.usage, _ = cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return e
}

func (w *world) prepare(name string, args ...string) *exec.Cmd {
	w.Helper()
	if _, ours := programs[name]; ours && stagetest.Race() {
		dir, err := undetected()
		if err != nil {
			w.Fatal(err)
		}
		name = filepath.Join(dir, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), w.env...)
	return cmd
}

// undetected returns a folder with the programs as they are without the race
// detector, under which these hundreds of processes would take many minutes. It
// has other tests to watch: those of the engine, and the scripts.
var undetected = sync.OnceValues(func() (string, error) {
	// Next to the programs that testscript made, and removed with them.
	self, err := exec.LookPath("runexp")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(self), "undetected")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "runexp")
	if out, err := exec.Command("go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	for name := range programs {
		if name == "runexp" {
			continue
		}
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, os.Symlink(program, filepath.Join(dir, "tests"))
})

// inUndetected runs the test in the binary without the race detector, and reports whether it did: not if this
// is that binary. Tests that only read files, or compute much, begin with it: they take up to twenty times
// longer under the race detector, which has nothing to find in them.
func inUndetected(t *testing.T) bool {
	t.Helper()
	if !stagetest.Race() {
		return false
	}
	dir, err := undetected()
	if err != nil {
		t.Fatal(err)
	}
	tests := exec.Command(filepath.Join(dir, "tests"), "-test.v", "-test.run", "^"+t.Name()+"$")
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return true
}

// run is runexp with an exit code that is asked for.
func (w *world) run(code int, args ...string) ending {
	w.Helper()
	return w.variation("runexp", code, args...)
}

func (w *world) variation(name string, code int, args ...string) ending {
	w.Helper()
	e := w.command(name, args...)
	if e.code != code {
		w.Fatalf("%s %s: exit code %d, want %d\n%s%s", name, strings.Join(args, " "), e.code, code, e.stdout,
			e.stderr)
	}
	return e
}

// An event is a line of --json.
type event struct {
	Event, Cell, Stage, Reason, Error string
	Done, Total                       int
}

func (e ending) events(t testing.TB) []event {
	t.Helper()
	var list []event
	for s := bufio.NewScanner(strings.NewReader(e.stdout)); s.Scan(); {
		var v event
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		list = append(list, v)
	}
	return list
}

// executed lists the cells that a run with --json executed, sorted.
func (e ending) executed(t testing.TB) []string {
	t.Helper()
	var cells []string
	for _, v := range e.events(t) {
		if v.Event == "done" {
			cells = append(cells, v.Cell)
		}
	}
	slices.Sort(cells)
	return cells
}

// wantCells fails the test unless the cells are those in want, written with spaces between them.
func wantCells(t testing.TB, what string, got []string, want string) {
	t.Helper()
	if g := strings.Join(got, " "); g != want {
		t.Errorf("%s: executed %q, want %q", what, g, want)
	}
}

// runtimeOrSkip skips a test that needs ONNX Runtime where there is none, on the terms of [stagetest.Lacks].
func runtimeOrSkip(t testing.TB) {
	t.Helper()
	file := os.Getenv("ONNXRUNTIME_LIB")
	if _, err := os.Stat(file); err == nil {
		return
	}
	stagetest.Lacks(t, fmt.Sprintf("no ONNX Runtime: ONNXRUNTIME_LIB is %q", file))
}

// net returns the path of one of the quickstart's nets.
func net(t testing.TB, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "experiments", "quickstart", name+".onnx"))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The variations of the command. Each is the command itself but for one thing.

// everyStage points to the stages that [registry.Builtin] copies.
func everyStage() []*stages.Stage {
	return []*stages.Stage{
		&attribute.Constant, &attribute.Occlusion, &attribute.Random, &dataset.Folder, &dataset.Shapes,
		&dataset.Text,
		&fuse.MetaRank, &mapstages.Rank, &model.ONNX, &model.Predict, &perturb.Deletion, &perturb.Insertion,
		&report.Leaderboard, &report.Sheet, &report.Table, &score.AUC, &score.MAS, &score.MassAccuracy,
	}
}

// countingMain writes, when the command has ended, how many items each stage was
// given to the file $COUNTS. A stage that sees everything at once counts one.
func countingMain() {
	var mu sync.Mutex
	counts := map[string]int{}
	for _, s := range everyStage() {
		run := s.Run
		s.Run = func(ctx context.Context, params any, e *stages.Env) error {
			n := e.Len()
			if s.Relation == stages.Whole {
				n = 1
			}
			mu.Lock()
			counts[s.Name] += n
			mu.Unlock()
			return run(ctx, params, e)
		}
	}
	code := newCommand().start(os.Args[1:])
	if os.Args[1] == workerVerb {
		os.Exit(code) // the file is that of the command that started it
	}
	b, err := json.Marshal(counts)
	if err == nil {
		err = os.WriteFile(os.Getenv("COUNTS"), b, 0o666)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// counting runs the command and returns what the stages were given, written as
// "dataset/folder 2, score/auc 1"; "" for nothing.
func (w *world) counting(args ...string) string {
	w.Helper()
	cmd := w.prepare("runexp-counting", args...)
	cmd.Env = append(cmd.Env, "COUNTS="+w.path("counts"))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("runexp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(w.read("counts")), &counts); err != nil {
		w.Fatal(err)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(list, ", ")
}

// dyingMain kills its own process at the $DIE-th point between two system calls
// with which the store writes. Without $DIE it prints how many there are.
func dyingMain() {
	die, _ := strconv.Atoi(os.Getenv("DIE"))
	var mu sync.Mutex
	n := 0
	u := newCommand()
	u.hook = func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == die {
			syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	code := u.start(os.Args[1:])
	if die == 0 {
		fmt.Fprintf(os.Stderr, "points: %d\n", n)
	}
	os.Exit(code)
}

// peakMain writes, when the command has ended, its largest resident memory to the
// file $PEAK, in bytes. Pages of files don't count: how much of a program the kernel
// maps depends on how its file was written, and copies of the same differ by 10 MiB.
// What wait4 reports of a child begins with its parent's memory.
func peakMain() {
	file := os.Getenv("PEAK")
	os.Unsetenv("PEAK") // the processes in which it opens models are of this program, too
	code := newCommand().start(os.Args[1:])
	if file == "" {
		os.Exit(code)
	}
	status, err := os.ReadFile(memoryFile)
	if err != nil {
		panic(err)
	}
	kib := func(name string) (n int64) {
		_, after, _ := strings.Cut(string(status), "\n"+name+":")
		if _, err := fmt.Sscan(after, &n); err != nil {
			panic(err)
		}
		return n
	}
	peak := (kib("VmHWM") - kib("RssFile")) << 10
	if err := os.WriteFile(file, fmt.Append(nil, peak), 0o666); err != nil {
		panic(err)
	}
	os.Exit(code)
}

const memoryFile = "/proc/self/status"

// peak runs the command and returns its largest resident memory in MiB, without pages
// of files.
func (w *world) peak(args ...string) (ending, float64) {
	w.Helper()
	if _, err := os.Stat(memoryFile); err != nil {
		w.Skipf("there's nothing to read a process's memory from: %v", err)
	}
	env := w.env
	defer func() { w.env = env }()
	w.env = append(slices.Clone(env), "PEAK="+w.path("peak"))
	e := w.variation("runexp-peak", 0, args...)
	bytes, err := strconv.ParseInt(w.read("peak"), 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return e, float64(bytes) / (1 << 20)
}

// scaledMain has scores that come out 1 % too large, of the same version.
func scaledMain() {
	for _, s := range []*stages.Stage{&score.AUC, &score.MassAccuracy} {
		run := s.Run
		s.Run = func(ctx context.Context, params any, e *stages.Env) error {
			err := run(ctx, params, e)
			for i := range e.Outputs {
				x, bad := stages.ScalarOf(e.Outputs[i].Data)
				if bad != nil {
					return bad
				}
				e.Outputs[i].Data = stages.Scalar(1.01 * x)
			}
			return err
		}
	}
	main()
}
