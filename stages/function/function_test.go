package function

import (
	"bufio"
	"context"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// numPy lets the interpreter find the NumPy that make deps installs.
func numPy(t testing.TB) {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", filepath.Join(root, "lib", "python"))
	if out, err := exec.Command(Interpreter, "-c", "import numpy").CombinedOutput(); err != nil {
		stagetest.Lacks(t, "Python has no NumPy, which make deps installs: "+string(out))
	}
}

// load returns the stage of a function in a file of testdata.
func load(t testing.TB, name string) stages.Stage {
	t.Helper()
	s, err := Load(context.Background(), "functions.py:"+name, filepath.Join("testdata", "functions.py"))
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// with returns the parameters of a stage, of which one has another value.
func with(t testing.TB, s stages.Stage, name, value string) any {
	t.Helper()
	p := s.NewParams()
	for _, f := range stages.Fields(p) {
		if f.Name == name {
			v := reflect.ValueOf(p).Elem().FieldByIndex(f.Index)
			if f.Type.Kind() == reflect.Float64 {
				x, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				v.SetFloat(x)
			} else {
				v.SetString(value)
			}
			return p
		}
	}
	t.Fatalf("%s has no parameter %s", s.Name, name)
	return nil
}

var (
	row  = stages.NewTensor([]float32{1, -2, 3, 0, 0, 0}, 2, 3).Encode()
	none = stages.NewTensor(make([]float32, 6), 2, 3).Encode()
	mask = stages.NewTensor([]uint8{0, 1, 0, 1, 0, 255}, 2, 3).Encode()
)

// TestDeclares: the signature and the decorator say what a stage is, as a declaration in Go would.
func TestDeclares(t *testing.T) {
	numPy(t)
	s := load(t, "share")
	var names []string
	for _, f := range stages.Fields(s.NewParams()) {
		names = append(names, f.Name+" "+f.Type.String())
	}
	want := []string{"code string", "power float64", "absolute bool", "name string", "k int"}
	if !slices.Equal(names, want) {
		t.Errorf("parameters: %q, want %q", names, want)
	}
	if s.Version != 3 || s.Doc != "The share of the map on the mask." || s.Seeded {
		t.Errorf("version %d, doc %q, seeded %v", s.Version, s.Doc, s.Seeded)
	}
	if len(s.Inputs) != 2 || s.Inputs[0].Name != "maps" || s.Inputs[1].Name != "masks" {
		t.Errorf("inputs: %v", s.Inputs)
	}
	f, err := s.Facts(s.NewParams(), nil)
	if err != nil || f["scores"]["direction"] != "lower" || f["scores"]["unit"] != "share" ||
		f["scores"]["low"] != "0" || f["scores"]["high"] != "1" {
		t.Errorf("facts: %v, %v", f, err)
	}
	if err := s.Check(s.NewParams(), nil); err != nil {
		t.Error(err)
	}
	for _, shape := range [][]int{nil, {2}, {-1}, {1, 1}} {
		if _, err := kinds["metric"].fits(array{DType: "float64", Shape: shape}, nil); err == nil {
			t.Errorf("the shape %v is one of a number", shape)
		}
	}
	if err := s.Check(with(t, s, codeName, "other"), nil); err == nil {
		t.Error("another code is accepted")
	}
}

// TestCalls: a function gets the items of its ports, and its results are the stage's.
func TestCalls(t *testing.T) {
	numPy(t)
	share := load(t, "share")
	score := func(name string, params any, in map[string][]stages.Data) []float64 {
		var out []float64
		s := share
		if name != "share" {
			s = load(t, name)
		}
		for _, b := range stagetest.Run(t, s, params, in).Payloads["scores"] {
			x, err := stages.ScalarOf(b)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, x)
		}
		return out
	}
	two := map[string][]stages.Data{
		"maps":  {stagetest.Items(nil, row, none)},
		"masks": {stagetest.Items(nil, mask, mask)},
	}
	if got := score("share", nil, two); math.Abs(got[0]-4.0/14) > 1e-7 || !math.IsNaN(got[1]) {
		t.Errorf("share: %v", got)
	}
	if got := score("share", with(t, share, "power", "1"), two); math.Abs(got[0]-2.0/6) > 1e-7 {
		t.Errorf("share of the power 1: %v", got)
	}
	image := stages.NewTensor([]uint8{0, 51, 0, 0, 0, 0}, 1, 2, 3).Encode()
	got := score("seen", nil, map[string][]stages.Data{
		"maps": {stagetest.Items(nil, row)}, "images": {stagetest.Items(nil, image)},
		"labels":   {stagetest.Items(nil, stages.NewTensor([]int64{3}, 1).Encode())},
		"targets":  {stagetest.Items(nil, stages.NewTensor([]int64{5, 4}, 2).Encode())},
		"segments": {stagetest.Items(nil, stages.NewTensor([]uint32{0, 1, 2, 3, 4, 7}, 2, 3).Encode())}})
	if want := 2 + 10*0.2 + 300 + 5000 - 4 + 7; math.Abs(got[0]-want) > 1e-5 {
		t.Errorf("seen: %v, want %v", got, want)
	}
	maps := map[string][]stages.Data{"maps": two["maps"]}
	first := score("draw", nil, maps)
	if again := score("draw", nil, maps); !slices.Equal(first, again) || first[0] == first[1] {
		t.Errorf("draws: %v, then %v", first, again)
	}
	channels := stages.NewTensor([]float32{1, 0, 0, 0, 0, 0, 0, -2, 3, 0, 0, 0}, 2, 2, 3).Encode()
	for name, c := range map[string]struct {
		of   []byte
		want []float64
	}{"doubled": {row, []float64{2, -4, 6, 0, 0, 0}}, "flat": {channels, []float64{1, -2, 3, 0, 0, 0}}} {
		in := map[string][]stages.Data{"maps": {stagetest.Items(nil, c.of)}}
		if name == "doubled" {
			in["images"] = []stages.Data{stagetest.Items(nil, image)}
		}
		m, err := stages.DecodeTensor(stagetest.Run(t, load(t, name), nil, in).Payloads["maps"][0])
		if err != nil || m.DType != stages.F32 || !slices.Equal(m.Float64s(), c.want) {
			t.Errorf("%s: %v %v, want %v", name, m.Float64s(), err, c.want)
		}
	}
}

// TestFails: whatever a function does costs its cell, and one sentence that says what and where.
func TestFails(t *testing.T) {
	numPy(t)
	in := map[string][]stages.Data{"maps": {stagetest.Items(nil, row)}}
	loaded := map[string]stages.Stage{"fails": load(t, "fails"), "shape": load(t, "shape")}
	for _, c := range []struct{ name, param, value, want string }{
		{"fails", "how", "raise", "functions.py:"},
		{"fails", "how", "raise", "ZeroDivisionError: division by zero"},
		{"fails", "how", "crash", "the process of the function ended (exit status 3)"},
		{"fails", "how", "exit", "the process of the function ended (exit status 4)"},
		{"fails", "how", "hang", "the function took more than 1s, and was ended"},
		{"fails", "how", "array", "a metric returns one number, this is float32 of the shape [2, 3]"},
		{"fails", "how", "text", "a metric returns one number"},
		{"shape", "how", "short", "the result has the shape [1, 3], and the map [2, 3]"},
		{"shape", "how", "large", "the result has the shape [100000, 100000], and the map [2, 3]"},
	} {
		s := loaded[c.name]
		_, err := stagetest.Try(s, with(t, s, c.param, c.value), in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.value, c.name, err, c.want)
		}
		if c.name != "fails" {
			continue
		}
		if _, err := stagetest.Try(s, nil, in); err != nil {
			t.Errorf("after %s: %v", c.value, err)
		}
	}
	for name, want := range map[string]string{
		"no_default": "the parameter threshold needs a default",
		"no_map":     "the function has no parameter map",
		"direction":  `direction is "up", and must be higher, lower or none`,
		"unmarked":   "there is no function unmarked with a decorator of runexp_xai.stage, only ",
		"absent":     "there is no function absent",
	} {
		_, err := Load(context.Background(), "functions.py:"+name, filepath.Join("testdata", "functions.py"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestCode: an edit of the file, or of one that it imports from beside it, is another code; nothing is
// written beside them.
func TestCode(t *testing.T) {
	numPy(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	code := func() string {
		s, err := Load(context.Background(), "functions.py:doubled", filepath.Join(dir, "functions.py"))
		if err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(s.NewParams()).Elem().Field(0).String()
	}
	first := code()
	if again := code(); again != first {
		t.Errorf("the code is %s, then %s", first, again)
	}
	known := []string{first}
	for _, file := range []string{"helper.py", "functions.py"} {
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, "\n# edited\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		next := code()
		if slices.Contains(known, next) {
			t.Errorf("after an edit of %s the code is what it was", file)
		}
		known = append(known, next)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("the folder has %v, %v", list, err)
	}
}

// TestOverhead: a call costs about a millisecond at 224².
func TestOverhead(t *testing.T) {
	numPy(t)
	const calls = 200
	var maps, images [][]byte
	for range calls {
		maps = append(maps, stages.NewTensor(make([]float32, 224*224), 224, 224).Encode())
		images = append(images, stages.NewTensor(make([]float32, 3*224*224), 3, 224, 224).Encode())
	}
	s := load(t, "doubled")
	in := map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)},
		"images": {stagetest.Items(nil, images...)}}
	start := time.Now()
	stagetest.Run(t, s, nil, in)
	each := time.Since(start) / calls
	t.Logf("%v a call", each)
	if each > 20*time.Millisecond {
		t.Errorf("%v a call", each)
	}
}

// loadFrom returns the stage f of a file with this text, beside which there may be other ones.
func loadFrom(t testing.TB, dir, text string) (stages.Stage, error) {
	t.Helper()
	write(t, dir, "f.py", "from runexp_xai.stage import *\n"+text)
	s, err := Load(context.Background(), "f.py:f", filepath.Join(dir, "f.py"))
	if err != nil {
		return stages.Stage{}, err
	}
	return *s, nil
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scoreOf calls a metric with a map.
func scoreOf(s stages.Stage, in map[string][]stages.Data) (float64, error) {
	if in == nil {
		in = map[string][]stages.Data{}
	}
	in["maps"] = []stages.Data{stagetest.Items(nil, row)}
	r, err := stagetest.Try(s, nil, in)
	if err != nil {
		return 0, err
	}
	return stages.ScalarOf(r.Payloads["scores"][0])
}

// TestCodeIsWhatRuns: a source runs and not what was compiled of another one of the same time and size. What
// is imported by a call, so that its edit would go unnoticed, is refused, unless the function names it or it
// lies in a folder of libraries.
func TestCodeIsWhatRuns(t *testing.T) {
	dir := t.TempDir()
	numPy(t)
	past := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []float64{1, 2} {
		write(t, dir, "value.py", "x = "+strconv.Itoa(i+1)+"\n")
		if err := os.Chtimes(filepath.Join(dir, "value.py"), past, past); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			cmd := exec.Command(Interpreter, "-c", "import value")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			list, err := filepath.Glob(filepath.Join(dir, "__pycache__", "*"))
			if err != nil || len(list) != 1 {
				t.Fatalf("compiled: %v, %v", list, err)
			}
		}
		s, err := loadFrom(t, dir, "import value\n@metric()\ndef f(map): return value.x\n")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := scoreOf(s, nil); got != want || err != nil {
			t.Errorf("the value is %v, %v, want %v", got, err, want)
		}
	}

	write(t, dir, "late/__init__.py", "")
	write(t, dir, "late/value.py", "x = 7\n")
	const late = "    from late.value import x\n    return x\n"
	s, err := loadFrom(t, dir, "@metric()\ndef f(map):\n"+late)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := scoreOf(s, nil); err == nil || !strings.Contains(err.Error(), "a call imported "+
			"late/__init__.py: import it at the head of the file") {
			t.Error(err)
		}
	}
	named := func() (float64, error) {
		s, err := loadFrom(t, dir, "@metric(files=['late/__init__.py', 'late/value.py'])\ndef f(map):\n"+late)
		if err != nil {
			t.Fatal(err)
		}
		return scoreOf(s, nil)
	}
	if got, err := named(); got != 7 || err != nil {
		t.Errorf("of files that it names a function has %v, %v", got, err)
	}
	t.Setenv("PYTHONPATH", filepath.Join(dir, "lib")+":"+os.Getenv("PYTHONPATH"))
	write(t, dir, "lib/installed.py", "x = 8\n")
	s, err = loadFrom(t, dir, "@metric()\ndef f(map):\n    import installed\n    return installed.x\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := scoreOf(s, nil); got != 8 || err != nil {
		t.Errorf("of a library a function has %v, %v", got, err)
	}
}

// TestArguments: what a function starts doesn't read its messages; a target without a second class is one.
func TestArguments(t *testing.T) {
	numPy(t)
	s, err := loadFrom(t, t.TempDir(), "import subprocess\n@metric(seconds=20)\n"+
		"def f(map): return len(subprocess.run(['cat'], capture_output=True, check=True).stdout)\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := scoreOf(s, nil); got != 0 || err != nil {
		t.Errorf("a process read %v bytes, %v", got, err)
	}
	s, err = loadFrom(t, t.TempDir(), "@metric()\n"+
		"def f(map, target): return target if isinstance(target, int) else 10 * target[0] + target[1]\n")
	if err != nil {
		t.Fatal(err)
	}
	for want, target := range map[float64][]int64{3: {3}, 34: {3, 4}, 4: {4, -1, 0}, 45: {4, 5, 1}} {
		in := map[string][]stages.Data{
			"targets": {stagetest.Items(nil, stages.NewTensor(target, len(target)).Encode())}}
		if got, err := scoreOf(s, in); got != want || err != nil {
			t.Errorf("the target %v is %v, %v, want %v", target, got, err, want)
		}
	}
}

// TestLimits: a range may be said to be infinite, and a limit may not.
func TestLimits(t *testing.T) {
	numPy(t)
	inf := func(how string) (stages.Stage, error) {
		return loadFrom(t, t.TempDir(), "from math import inf, nan\n@metric("+how+")\ndef f(map): return 1\n")
	}
	s, err := inf("low=0, high=inf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Facts(s.NewParams(), nil)
	if err != nil || f["scores"]["low"] != "0" || f["scores"]["high"] != "+Inf" {
		t.Errorf("facts: %v, %v", f, err)
	}
	for how, want := range map[string]string{"high=nan": "an end of the range of scores is nan",
		"low=inf": "an end of the range of scores is inf", "seconds=inf": "seconds is inf",
		"seconds=0": "seconds is 0, and must be a number above 0"} {
		if _, err := inf(how); err == nil || !strings.Contains(err.Error(), "f.py:3: ValueError: "+want) {
			t.Errorf("%s: %v, want %q", how, err, want)
		}
	}
}

// TestEndsWithParent: a function that still runs when the command has died ends.
func TestEndsWithParent(t *testing.T) {
	numPy(t)
	dir := t.TempDir()
	if _, err := loadFrom(t, dir, "@metric()\ndef f(map): return 1\n"); err != nil {
		t.Fatal(err)
	}
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	held, hold, err := os.Pipe() // the process waits for a message
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	cmd := exec.Command("sh", "-c", `"$0" -m runexp_xai.worker "$1" f <&3 & echo $!; read x`, Interpreter,
		filepath.Join(dir, "f.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "python")+":"+os.Getenv("PYTHONPATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles = []*os.File{held}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // it may have ended
	held.Close()
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('}'); err != nil { // it has begun, and describes the function
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, lines) // until the process ends
		ended <- err
	}()
	in.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the process still runs")
	}
	_ = cmd.Wait() // it ended with read
}
