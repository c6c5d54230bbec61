package function

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
		if _, err := (&request{metric: true}).fits(array{DType: "float64", Shape: shape}); err == nil {
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
