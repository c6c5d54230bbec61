package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestShapes compares the nets with the numbers of parameters that torchvision states, apart from what
// BatchNormalization has measured and from the scalars in attention and in GELU.
func TestShapes(t *testing.T) {
	for name, want := range map[string]int{
		"resnet50": 25_557_032 + 2*26_560,
		"vit_b_16": 86_567_656 + 12*4,
	} {
		g := newGraph()
		g.empty = true
		if shapes[name].build(g); g.weights != want {
			t.Errorf("%s has %d parameters, not %d", name, g.weights, want)
		}
	}
}

func needRuntime(t *testing.T) {
	t.Helper()
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	t.Setenv("TMPDIR", t.TempDir())
}

// lines returns what measures print, without figures.
func lines(t *testing.T, measure func(w io.Writer) error) (verbs []string) {
	t.Helper()
	var text strings.Builder
	if err := measure(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		words := strings.Fields(line)
		verbs = append(verbs, strings.Join(words[:2], " "))
		if words[0] == "failed" {
			t.Log(line)
		}
	}
	return verbs
}

func TestEveryTaskIsMeasured(t *testing.T) {
	needRuntime(t)
	for _, net := range []string{"resnet_tiny", "vit_tiny"} {
		for _, task := range []string{"gradient", "ig-50", "lrp", "deletion", "rise"} {
			got := lines(t, func(w io.Writer) error {
				return speed(t.Context(), w, "cpu", net, task, 0, []int{2, 3})
			})
			if want := "start 2,rate 2,note its"; strings.Join(got, ",") != want {
				t.Errorf("%s of %s printed %v", task, net, got)
			}
		}
	}
}

func TestParityOfTheProcessorWithItself(t *testing.T) {
	needRuntime(t)
	var text strings.Builder
	if err := parity(t.Context(), &text, "cpu", "resnet_tiny", strings.Split(firstStages, ",")); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, s := range []stages.Stage{model.Predict, attribute.Saliency, attribute.LRPEpsilon,
		perturb.Deletion} {
		want += fmt.Sprintf("compared %s 0 %.2g\n", s.Name, s.Tolerance)
	}
	if text.String() != want {
		t.Errorf("got %s", &text)
	}
}

// TestNoDevice holds that a class which the library lacks fails stage by stage and batch by batch.
func TestNoDevice(t *testing.T) {
	needRuntime(t)
	got := lines(t, func(w io.Writer) error {
		return parity(t.Context(), w, "cuda", "vit_tiny", []string{"attribute/saliency"})
	})
	got = append(got, lines(t, func(w io.Writer) error {
		return speed(t.Context(), w, "cuda", "vit_tiny", "gradient", time.Minute, []int{4, 2, 1})
	})...)
	if want := "failed attribute/saliency,failed 4,failed 2"; strings.Join(got, ",") != want {
		t.Errorf("got %v", got)
	}
	err := plainly("cuda", errors.New("a_file.cc:17: it can't be had"))
	if want := "cuda: this ONNX Runtime has no CUDA: "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %q, want a sentence that begins with %q", err, want)
	}
}

// TestEveryCurveIsRounded holds that the curves of a net are compared in a precision: without a device each
// fails.
func TestEveryCurveIsRounded(t *testing.T) {
	needRuntime(t)
	got := lines(t, func(w io.Writer) error {
		return rounding(t.Context(), w, "cuda", "vit_tiny", stages.TF32)
	})
	for _, name := range []string{"ablation", "deletion", "insertion", "region", "road", "subset"} {
		if !slices.Contains(got, "failed perturb/"+name) {
			t.Errorf("%s isn't among %v", name, got)
		}
	}
}

// TestBothHalvesComputeTheSame compares the numbers of evaluations with those of PyTorch's half.
func TestBothHalvesComputeTheSame(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "torch_times.py"))
	if err != nil {
		t.Fatal(err)
	}
	rise := attribute.RISE.NewParams().(*attribute.RISEParams)
	for _, want := range []string{
		fmt.Sprintf("\nIG_STEPS, CURVE_STEPS, RISE_MASKS, CELLS = %d, %d, %d, %d\n", igSteps, curveSteps,
			riseMasks, rise.Cells),
		fmt.Sprintf("\nLEAST_SECONDS, MOST_IMAGES = %v, %d\n", leastSeconds, mostImages),
	} {
		if !strings.Contains(string(script), want) {
			t.Errorf("torch_times.py lacks %q", want)
		}
	}
}

// stubs are programs of a kit. The card hangs in deletion, with a process of its own, and Python has a
// PyTorch that is half as fast.
var stubs = map[string]string{
	"webgpu/runexp": `echo "runexp   1.0"; echo "webgpu   a card"; echo "         of two"
echo "store    here"; echo "         not"`,
	"webgpu/card": `case "$1 $4" in
"parity "*) echo compared attribute/saliency 1e-6 1e-4; echo failed perturb/deletion it is broken; exit 1;;
"rounding float16") echo rounded perturb/deletion logit float16 0.0016;;
"speed gradient")
	echo start 1; sleep 1; echo rate 1 100
	echo start 2; echo rate 2 150
	echo failed 4 out of memory;;
"speed deletion") echo start 1; sleep 1000;;
*) exit 3;;
esac`,
	"bin/python3": `case "$1" in
-c) echo torch 2.0; echo card True;;
*) echo start 2; echo rate 2 75;;
esac`,
	"bin/nvidia-smi": `case "$*" in
*-lms*) while :; do echo 90, 1000; sleep 0.1; done;;
*) echo A card, 1000 MiB, 1.0;;
esac`,
}

func TestRunEndsInTimeAndTellsWhatFailed(t *testing.T) {
	dir := t.TempDir()
	for name, script := range stubs {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":/usr/bin:/bin")
	t.Setenv("PYTHON", "")
	t.Setenv("TMPDIR", t.TempDir())
	const seconds = 6
	ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
	defer cancel()
	var log strings.Builder
	out := filepath.Join(dir, "out")
	start := time.Now()
	r := &run{log: &log, kit: dir, out: out, classes: []string{"webgpu", "cuda"}}
	if err := r.all(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start).Seconds(); took > seconds+3 {
		t.Errorf("it took %.1f s", took)
	}
	page, err := os.ReadFile(filepath.Join(out, "table.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| card | A card, 1000 MiB, 1.0 |",
		"| PyTorch | 2.0 |",
		"| webgpu | a card; of two |",
		"| webgpu | resnet | 1 of 2 | 0 | 1 | 1e-06, attribute/saliency |",
		"| webgpu | resnet | perturb/deletion | failed | it is broken |",
		"| webgpu | float16 | perturb/deletion | logit | 0.0016 | resnet |",
		"| resnet50 | gradient | webgpu | 2 | 150 | 2.00 × PyTorch |  |  |",
		"| resnet50 | gradient | PyTorch | 2 | 75 |  |  |  |",
		"| resnet50 | gradient | webgpu | 100 | 150 |",
		"| gradient at batch 4 of resnet50, webgpu | out of memory |",
		"| cuda | its pieces aren't here |",
		"| deletion of resnet50, webgpu | the time was over after ",
		"quickstart on 2 images, webgpu | the time was over before |",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("table.md lacks %q", want)
		}
	}
	if !strings.Contains(log.String(), "webgpu, batch 1: 100 images/s, busy 90 %, 1000 MiB") {
		t.Error("the card wasn't watched")
	}
	if t.Failed() {
		t.Logf("%s%s", &log, page)
	}
	f, err := os.Open(filepath.Join(out, "table.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 5 ||
		strings.Join(rows[1], ",") != "resnet50,gradient,webgpu,1,100,90,1000,,," {
		t.Errorf("table.csv: %v, %v", rows, err)
	}
}
