package function

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// picture is an image of 2×3 pixels, one of its own for each i.
func picture(i uint8) []byte {
	v := make([]uint8, 18)
	for k := range v {
		v[k] = uint8(k)*14 + i
	}
	return stages.NewTensor(v, 3, 2, 3).Encode()
}

// of runs a stage on two images and returns the results, as far as the stage got.
func of(s stages.Stage, params any, in map[string][]stages.Data) (out []stages.Tensor, r stagetest.Result,
	err error) {
	all := map[string][]stages.Data{"images": {stagetest.Items(nil, picture(0), picture(1))}}
	for port, d := range in {
		all[port] = d
	}
	if r, err = stagetest.Try(s, params, all); err != nil {
		return nil, r, err
	}
	for _, b := range r.Payloads[s.Outputs[0].Name] {
		t, err := stages.DecodeTensor(b)
		if err != nil {
			return nil, r, err
		}
		out = append(out, t)
	}
	return out, r, nil
}

// TestSegments: a function divides images into segments, numbered as it likes.
func TestSegments(t *testing.T) {
	numPy(t)
	dir := t.TempDir()
	s, err := loadFrom(t, dir, "import numpy as np\n@segments()\ndef f(image, how='bright'):\n"+
		"    if how == 'bright': return (image[0] > 0.15).astype(np.int16) * 300\n"+
		"    if how == 'bool': return image[0] > 0.15\n"+
		"    if how == 'large': return np.full(image.shape[1:], 2**32 - 1, np.uint64)\n"+
		"    return {'floats': image[0], 'image': (image * 9).astype(int),\n"+
		"            'negative': -np.ones((2, 3), int),\n"+
		"            'larger': np.full((2, 3), 2**32)}[how]\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Inputs) != 1 || s.Inputs[0].Name != "images" || s.Outputs[0].Type != stages.Segments {
		t.Errorf("ports: %v, %v", s.Inputs, s.Outputs)
	}
	for how, want := range map[string][]float64{"bright": {0, 0, 0, 300, 300, 300},
		"bool": {0, 0, 0, 1, 1, 1}, "large": slices.Repeat([]float64{math.MaxUint32}, 6)} {
		got, _, err := of(s, with(t, s, "how", how), nil)
		if err != nil || got[0].DType != stages.U32 || !slices.Equal(got[0].Float64s(), want) ||
			!slices.Equal(got[0].Shape, []int{2, 3}) {
			t.Errorf("%s: %v, %v", how, got, err)
		}
	}
	for how, want := range map[string]string{
		"floats":   "segments have integers, as astype(int) makes them, not float32",
		"image":    "the result has the shape [3, 2, 3], and the image [3, 2, 3]",
		"negative": "segments have numbers from 0 to 2^32 - 1, not -1 to -1",
		"larger":   "segments have numbers from 0 to 2^32 - 1, not 4294967296 to 4294967296",
	} {
		_, _, err := of(s, with(t, s, "how", how), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", how, err, want)
		}
	}
	if _, err := loadFrom(t, dir, "@segments()\ndef f(map): return map\n"); err == nil ||
		!strings.Contains(err.Error(), "the function has no parameter image") {
		t.Error(err)
	}
}

// TestAttribute: a function is a method, which has the ports of all methods.
func TestAttribute(t *testing.T) {
	numPy(t)
	s, err := loadFrom(t, t.TempDir(), "import numpy as np\n@attribute()\n"+
		"def f(image, target, how='flat'):\n"+
		"    if how == 'flat': return image.mean(axis=0, dtype=np.float64) * target\n"+
		"    if how == 'none': return np.full(image.shape[1:], np.nan, np.float32)\n"+
		"    return {'one': image[:1], 'three': image, 'two': image[:2], 'small': image[:, 1:]}[how]\n")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range s.Inputs {
		names = append(names, fmt.Sprint(p.Name, " ", p.Optional, " ", p.Else))
	}
	want := []string{"images false ", "labels true ", "targets false model/predict", "model true "}
	if !slices.Equal(names, want) || s.Outputs[0].Type != stages.Maps {
		t.Errorf("ports: %q, want %q", names, want)
	}
	if d := s.Declares(nil, nil); d["target"] != "predicted" {
		t.Errorf("it declares %v", d)
	}
	if d := s.Declares(nil, map[string]stages.Declared{"targets": nil}); d["target"] != "" {
		t.Errorf("with targets it declares %v", d)
	}
	two := stages.NewTensor([]int64{2}, 1).Encode()
	targets := map[string][]stages.Data{"targets": {stagetest.Items(nil, two, two)}}
	for how, shape := range map[string][]int{"flat": {2, 3}, "one": {1, 2, 3}, "three": {3, 2, 3}} {
		got, r, err := of(s, with(t, s, "how", how), targets)
		if err != nil || !slices.Equal(got[1].Shape, shape) || len(r.Warnings) != 0 {
			t.Fatalf("%s: %v %v, %v", how, got, r.Warnings, err)
		}
		v := got[1].Float64s()
		if want := 2 * (1 + 85 + 169) / 255.0 / 3; how == "flat" && (math.Abs(v[0]-want) > 1e-6 ||
			got[1].DType != stages.F64) {
			t.Errorf("flat is %v, want %v", v[0], want)
		}
	}
	for _, how := range []string{"two", "small"} {
		if _, _, err := of(s, with(t, s, "how", how), targets); err == nil ||
			!strings.Contains(err.Error(), "and the image [3, 2, 3]") {
			t.Errorf("%s: %v", how, err)
		}
	}
	got, r, err := of(s, with(t, s, "how", "none"), targets)
	if err != nil || got[0].Undefined() != 6 || len(r.Warnings) != 2 ||
		!strings.Contains(r.Warnings[0], "6 of 6 values of its map are not numbers") {
		t.Errorf("undefined maps: %v %v, %v", got, r.Warnings, err)
	}
}

// TestUndefinedMap: a metric isn't asked of a map that isn't defined: a comparison would make a number of it.
func TestUndefinedMap(t *testing.T) {
	numPy(t)
	s, err := loadFrom(t, t.TempDir(), "@metric()\ndef f(map): return (map > 0).sum()\n")
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float32]float64{1: 1, float32(math.NaN()): math.NaN(),
		float32(math.Inf(1)): math.NaN()} {
		m := stages.NewTensor([]float32{-1, x}, 1, 2).Encode()
		r, err := stagetest.Try(s, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil, m)}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := stages.ScalarOf(r.Payloads["scores"][0])
		if err != nil || got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("of a map with %v: %v, %v, want %v", x, got, err, want)
		}
	}
}

// quickstart returns one of the nets of the quickstart.
func quickstart(t *testing.T, labels string) stages.Data {
	t.Helper()
	modeltest.Runtime(t)
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	return modeltest.Model(t, model.ONNXParams{Path: filepath.Join(root, "experiments", "quickstart",
		"vgg.onnx"), Preset: "caffe-bgr", Labels: labels})
}

// TestModel: a function gets the model that is wired, with its preparation of images, and the next one where
// that is another.
func TestModel(t *testing.T) {
	numPy(t)
	d := quickstart(t, "")
	spec := modeltest.Spec(t, d)
	s, err := loadFrom(t, t.TempDir(), "import numpy as np\n@attribute()\n"+
		"def f(image, target, model, how='input'):\n"+
		"    if how == 'input': return model.normalise(image)\n"+
		"    facts = [model.classes, model.height, model.batch, len(model.labels), len(model.onnx)]\n"+
		"    facts += [target] if isinstance(target, int) else target\n"+
		"    return np.resize(np.float64(facts), image.shape[1:])\n")
	if err != nil {
		t.Fatal(err)
	}
	pixels := make([]uint8, 3*spec.Height*spec.Width)
	for k := range pixels {
		pixels[k] = uint8(k * k)
	}
	image := stages.NewTensor(pixels, 3, spec.Height, spec.Width)
	run := func(how string, d stages.Data, target ...int64) ([]float64, error) {
		r, err := stagetest.Try(s, with(t, s, "how", how), map[string][]stages.Data{"model": {d},
			"images":  {stagetest.Items(nil, image.Encode())},
			"targets": {stagetest.Items(nil, stages.NewTensor(target, len(target)).Encode())}})
		if err != nil {
			return nil, err
		}
		m, err := stages.DecodeTensor(r.Payloads["maps"][0])
		return m.Float64s(), err
	}
	want := make([]float32, spec.Size())
	if err := spec.Normalise(image, want); err != nil {
		t.Fatal(err)
	}
	got, err := run("input", d, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if got[i] != float64(w) {
			t.Fatalf("value %d of the input is %v, want %v", i, got[i], w)
		}
	}
	file, err := modeltest.Net(t, d).File(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grids := modeltest.Rewritten(t, model.DiPart, d)
	heads := modeltest.Spec(t, grids)
	facts := []float64{float64(spec.Classes), float64(spec.Height), 0, 0, float64(len(file.ONNX)), 4, 2}
	if got, err = run("facts", d, 4, 2); err != nil || !slices.Equal(got[:7], facts) {
		t.Errorf("facts: %v %v, want %v", got[:min(7, len(got))], err, facts)
	}
	image = stages.NewTensor(make([]uint8, 3*heads.Height*heads.Width), 3, heads.Height, heads.Width)
	got, err = run("facts", grids, 4, -1, 3)
	if err != nil || got[0] != float64(heads.Classes) || got[1] != float64(heads.Height) || got[2] != 1 ||
		got[5] != float64(3*heads.PerHead()+4) {
		t.Errorf("facts of a grid: %v, %v", got[:min(7, len(got))], err)
	}
	_, err = run("facts", d, 1000)
	if err == nil || !strings.Contains(err.Error(), "class 1000 is not one") {
		t.Error(err)
	}
}

// TestLabels: a function gets the names of the classes.
func TestLabels(t *testing.T) {
	numPy(t)
	dir := t.TempDir()
	d := quickstart(t, "")
	n := modeltest.Spec(t, d).Classes
	write(t, dir, "names.txt", strings.Repeat("cat\n", n))
	s, err := loadFrom(t, dir, "@metric()\n"+
		"def f(map, model): return len(set(model.labels)) + 2 * len(model.labels)\n")
	if err != nil {
		t.Fatal(err)
	}
	for want, d := range map[float64]stages.Data{0: d, float64(1 + 2*n): quickstart(t,
		filepath.Join(dir, "names.txt"))} {
		if got, err := scoreOf(s, map[string][]stages.Data{"model": {d}}); err != nil || got != want {
			t.Errorf("labels: %v %v, want %v", got, err, want)
		}
	}
}

// TestCheckCallsNothing: a check, which tries stages on models, calls no function.
func TestCheckCallsNothing(t *testing.T) {
	numPy(t)
	s, err := loadFrom(t, t.TempDir(), "@attribute()\ndef f(image): return 1 / 0\n")
	if err != nil {
		t.Fatal(err)
	}
	d := quickstart(t, "")
	wired := func(port string) bool { return port == "images" || port == "model" }
	err = new(program.Rehearsal).Rehearse(context.Background(), &s, s.NewParams(),
		program.Subject{Spec: modeltest.Spec(t, d), Model: d}, wired)
	if !errors.Is(err, program.ErrNoPart) {
		t.Error(err)
	}
}

// TestMemory: a function that wants more memory than it may have costs its cell, and can be called again.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit holds on Linux alone")
	}
	numPy(t)
	s, err := loadFrom(t, t.TempDir(), "import numpy as np\n"+
		"@metric(memory=2)\ndef f(map, millions=1.0): return len(np.empty(int(millions * 1e6)))\n")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string][]stages.Data{"maps": {stagetest.Items(nil, row)}}
	for _, millions := range []string{"1", "500", "1"} {
		_, err := stagetest.Try(s, with(t, s, "millions", millions), in)
		switch {
		case millions == "1":
			if err != nil {
				t.Error(err)
			}
		case err == nil || !strings.Contains(err.Error(), "f.py:4: ") || !strings.Contains(err.Error(),
			"MemoryError: ") || !strings.Contains(err.Error(), "; the process may allocate 2 GB: memory of "+
			"the decorator sets how many"):
			t.Error(err)
		}
	}
}

// TestExpressions: a function takes no model whose answer is an expression, nor what one freezes; a check
// already says the first.
func TestExpressions(t *testing.T) {
	numPy(t)
	s, err := loadFrom(t, t.TempDir(), "@attribute()\ndef f(image, model): return image\n")
	if err != nil {
		t.Fatal(err)
	}
	base := quickstart(t, "")
	p := model.Target.NewParams().(*model.TargetParams)
	p.Target = "sum(output)"
	r := stagetest.Run(t, model.Target, p, map[string][]stages.Data{"model": {base}})
	d := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
	d.Base = &base
	const want = "the answer of this one is the expression sum(output)"
	_, _, err = of(s, nil, map[string][]stages.Data{"model": {d}})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	wired := func(port string) bool { return port == "images" || port == "model" }
	err = new(program.Rehearsal).Rehearse(context.Background(), &s, s.NewParams(),
		program.Subject{Spec: modeltest.Spec(t, d), Model: d}, wired)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if s, err = loadFrom(t, t.TempDir(), "@attribute()\ndef f(image, target): return image\n"); err != nil {
		t.Fatal(err)
	}
	frozen := stages.NewTensor([]float32{0.5}, 1).Encode()
	_, _, err = of(s, nil, map[string][]stages.Data{"targets": {stagetest.Items(nil, frozen, frozen)}})
	if err == nil || !strings.Contains(err.Error(), "targets: an expression is explained") {
		t.Error(err)
	}
}
