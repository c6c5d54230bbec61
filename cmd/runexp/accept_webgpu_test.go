package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The quickstart, on two images, gives on WebGPU what it gives on the processor: the second run reproduces
// what the first has published. Two images are too few for a grid of four, on either device.
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
	args := []string{"run", quickstart, "--limit", "2", "--out", "both",
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
	if !strings.Contains(said, "reproduced") || strings.Contains(said, "differs") ||
		!strings.Contains(said, "1 cell failed") {
		t.Errorf("on WebGPU the quickstart says:\n%s", said)
	}
}
