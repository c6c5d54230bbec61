package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The quickstart, on two images, computes on WebGPU what it computes on the processor: the run compares every
// stage, on the same inputs, and finds none farther off than it tolerates; most of what a run on the
// processor has published is reproduced. What isn't is of Grad-CAM on the ViT, whose map is 0 on much of an
// image, up to the last bit, which there decides on the pixels' order. Two images are too few for a grid of
// four, on either device.
func TestQuickstartOnWebGPU(t *testing.T) {
	mode := os.Getenv("RUNEXP_WEBGPU")
	if mode == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	runtimeOrSkip(t)
	quickstart, err := filepath.Abs("../../experiments/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", quickstart, "--limit", "2", "--out", "both", "--partial",
		"--set", "insertion.with.steps=2", "--set", "deletion.with.steps=2", "--set", "ablation.with.steps=2",
		"--set", "axes.method.rise.with.masks=16", "--set", "axes.method.smoothgrad.with.samples=4",
		"--set", "axes.method.integrated-gradients.with.steps=4"}
	if mode != "all" {
		args = append(args, "--only", "model=vit,resnet", "--only", "method=constant,saliency,lrp,grad-cam")
	}
	w := newWorld(t, nil)
	w.run(1, append(args, "--devices", "cpu", "--store", "cpu")...)
	e := w.run(1, append(args, "--devices", "webgpu", "--store", "webgpu")...)
	said := e.stdout + e.stderr
	for _, text := range []string{"reproduced", "compared with the processor: ", "1 cell failed"} {
		if !strings.Contains(said, text) {
			t.Errorf("on WebGPU the quickstart doesn't say %q:\n%s", text, said)
		}
	}
	for line := range strings.Lines(said) {
		scored, ok := strings.CutPrefix(line, "differs: ")
		cell, _, _ := strings.Cut(scored, "]")
		if strings.Contains(line, " beyond ") || strings.Contains(line, "refused") ||
			ok && strings.Contains(cell, "[") && strings.Contains(cell, "method=") &&
				!(strings.Contains(cell, "grad-cam") && strings.Contains(cell, "vit")) {
			t.Errorf("on WebGPU the quickstart says: %s", line)
		}
	}
}
