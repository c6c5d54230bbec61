package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// TestPythonExamples runs the examples of stages in Python. Those of Quantus and captum need RUNEXP_PYTHON=1,
// which make test-python sets where python3 has their packages.
func TestPythonExamples(t *testing.T) {
	runtimeOrSkip(t)
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	for _, folder := range []string{"experiments/examples/python", "experiments/quickstart"} {
		if err := os.CopyFS(w.path(folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	if exec.Command("python3", "-c", "import numpy").Run() != nil {
		w.env = append(w.env, "PYTHONPATH="+filepath.Join(root, "lib", "python"))
	}
	cmd := exec.Command("python3", "-c", "import numpy")
	cmd.Env = append(os.Environ(), w.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		stagetest.Lacks(t, "Python has no NumPy, which make deps installs: "+string(out))
	}
	run := func(name string) func(stage string) map[string]float64 {
		file := "experiments/examples/python/" + name + ".yaml"
		args := []string{"run", file, "--allow-python", "--out", name, "--json"}
		w.run(0, args...)
		wantCells(t, name+" again", w.run(0, args...).executed(t), "")
		return func(stage string) map[string]float64 {
			return w.means(name + "/items/" + stage + ".csv")
		}
	}

	t.Run("own", func(t *testing.T) {
		distance := run("own_metric")("distance")
		if len(distance) != 4 || distance["lrp"] <= 0 || distance["lrp"] >= distance["random"] ||
			distance["random"] >= 1 {
			t.Errorf("the distances are %v", distance)
		}
	})
	if os.Getenv("RUNEXP_PYTHON") == "" {
		t.Log("left out: the examples of Quantus and captum, which make test-python runs")
		return
	}
	t.Run("quantus", func(t *testing.T) {
		means := run("quantus_metric")
		theirs, ours := means("quantus"), means("runexp")
		for method, v := range ours {
			if theirs[method] != v {
				t.Errorf("%s has %v by Quantus, and %v here", method, theirs[method], v)
			}
		}
		if len(theirs) != 4 || len(ours) != 4 {
			t.Errorf("%d and %d methods", len(theirs), len(ours))
		}
	})
	t.Run("documented", func(t *testing.T) { w.documentedMethod(t, root) })
	t.Run("captum", func(t *testing.T) {
		if means := run("captum_lime")("agreement"); means[""] < 0.5 {
			t.Errorf("captum's maps agree with ours by %v", means)
		}
	})
}

// occlusionExperiment has a method in Python beside ours, on a trained and on a random net.
const occlusionExperiment = `
name: occlusion
axes:
  method:
    python: {uses: "occlusion.py:occlusion"}
    ours: {uses: attribute/occlusion, with: {window: 8, stride: 8, output: probability}}
stages:
  images: {uses: dataset/shapes, with: {count: 4, seed: 3}}
  net: {uses: model/onnx, with: {path: NET, preset: half}}
  other: {uses: model/randomise, in: {model: net}}
  trained: {uses: "${method}", matrix: [method], in: {model: net, images: images}}
  random: {uses: "${method}", matrix: [method], in: {model: other, images: images}}
  table: {uses: report/table, in: {values: {net: {trained: one, random: two}}}, over: all, with: {rows: [net]}}
  one: {uses: score/mass-accuracy, in: {maps: trained, masks: images.masks}}
  two: {uses: score/mass-accuracy, in: {maps: random, masks: images.masks}}
publish: [table]
`

// documentedMethod compares the method of language.md with ours.
func (w *world) documentedMethod(t *testing.T, root string) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "language.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```python\nfrom runexp_xai.stage import attribute\n")
	code, _, found := strings.Cut(code, "```")
	if !found {
		t.Fatal("language.md has no method")
	}
	w.write("occlusion.py", []byte("import numpy as np\nfrom runexp_xai.stage import attribute\n"+code))
	w.write("occlusion.yaml", []byte(strings.Replace(occlusionExperiment, "NET", net(t, "vgg"), 1)))
	for _, model := range []string{"trained", "random"} {
		for _, method := range []string{"python", "ours"} {
			w.run(0, "get", "occlusion.yaml", model+"[method="+method+"]", "--allow-python", "-o",
				model+"-"+method)
		}
		const deviation = "import numpy as np, sys\n" +
			"a, b = (np.load(sys.argv[1] + name + '/maps.npy') for name in ('-python', '-ours'))\n" +
			"print(abs(a - b).max() / abs(b).max(), a.shape == b.shape)"
		got := strings.Fields(w.command("python3", "-c", deviation, model).stdout)
		if d, err := strconv.ParseFloat(got[0], 64); err != nil || !(d <= 1e-5) || got[1] != "True" {
			t.Errorf("%s: maps in Python deviate from ours by %v", model, got)
		}
	}
}

// means returns the mean over items of each cell in a file of scores, by the id in its name.
func (w *world) means(file string) map[string]float64 {
	w.Helper()
	rows, err := csv.NewReader(strings.NewReader(w.read(file))).ReadAll()
	if err != nil {
		w.Fatal(err)
	}
	means := map[string]float64{}
	for _, row := range rows[1:] {
		_, name, _ := strings.Cut(strings.TrimSuffix(row[0], "]"), "=")
		sum := 0.0
		for _, field := range row[1:] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				w.Fatal(err)
			}
			sum += v
		}
		means[name] = sum / float64(len(row)-1)
	}
	return means
}

// TestCompiledInPython loads compiled files by onnx.checker and onnxruntime, in a batch of three.
func TestCompiledInPython(t *testing.T) {
	runtimeOrSkip(t)
	if exec.Command("python3", "-c", "import onnx, onnxruntime, numpy").Run() != nil {
		if os.Getenv("RUNEXP_PYTHON") != "" {
			t.Fatal("Python has no onnx or onnxruntime, which make test-python installs")
		}
		t.Skip("skipped: Python has no onnx or onnxruntime, with which make test-python runs this")
	}
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil)
	for _, c := range []struct{ net, method, shape string }{
		{"resnet", "grad-cam", "[3 64 64]"}, {"vgg-bn", "lrp-composite", "[3 64 64]"},
		{"vit", "saliency", "[3 64 64]"}, {"vit", "tibav", "[3 64 64]"}, {"resnet", "abslrp", "[3 64 64]"},
		{"resnet", "smoothgrad", "[3 64 64]"}, {"vgg", "deeplift", "[3 64 64]"},
		{"vit", "integrated-gradients", "[3 64 64]"}, {"vit", "transition-attention", "[3 64 64]"},
	} {
		net := filepath.Join(root, "experiments", "quickstart", c.net+".onnx")
		args := []string{"compile", net, "--preset", "half", "--method", c.method, "--out", "net.onnx",
			"--target-input"}
		w.run(0, args...)
		cmd := exec.Command("python3", filepath.Join("testdata", "compiled.py"), w.path("net.onnx"), "3")
		out, err := cmd.Output()
		if err != nil {
			if failed := new(exec.ExitError); errors.As(err, &failed) {
				out = failed.Stderr
			}
			t.Errorf("%s of %s: %v: %s", c.method, c.net, err, out)
			continue
		}
		var got struct {
			Domains []string
			Opset   []int
			Shapes  map[string][]int
			Finite  bool
			Method  string
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Shapes["map"]) != c.shape || fmt.Sprint(got.Shapes["logits"]) != "[3 12]" ||
			!got.Finite || fmt.Sprint(got.Domains, got.Opset) != "[] [17]" ||
			got.Method != "attribute/"+c.method {
			t.Errorf("%s of %s: %s", c.method, c.net, out)
		}
	}
}
