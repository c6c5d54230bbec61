package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestEveryMethod runs every attribution method through the engine, on slots as they
// are, on a net of convolutions and a vision transformer: each makes its maps, but
// those that look at attention, which the first net hasn't.
func TestEveryMethod(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	// Fewer steps than the defaults, where a method takes many.
	few := map[string]string{
		"guided-ig": "steps: 4", "rise": "masks: 20", "agi": "steps: 2, classes: 2", "integrated-gradients": "steps: 4", "left-ig": "steps: 4",
		"transition-attention": "steps: 4", "smoothgrad": "samples: 2", "vargrad": "samples: 2", "occlusion": "window: 16, stride: 16",
	}
	var methods strings.Builder
	for _, s := range registry.Builtin().Family("attribute") {
		name := strings.TrimPrefix(s.Name, "attribute/")
		if s.Output("maps") == nil || name == "external" {
			continue
		}
		fmt.Fprintf(&methods, "    %s: {uses: %s, with: {%s}}\n", name, s.Name, few[name])
	}
	w := newWorld(t, map[string]string{"methods.yaml": `name: methods
axes:
  model:
    vgg: {path: vgg.onnx}
    vit: {path: vit.onnx}
  method:
` + methods.String() + `stages:
  images: {uses: dataset/shapes, with: {count: 2, seed: 1000009}}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: half}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
publish: [mass]
`})
	for _, net := range []string{"vgg.onnx", "vit.onnx"} {
		b, err := os.ReadFile(filepath.Join(root, "experiments", "quickstart", net))
		if err == nil {
			err = os.WriteFile(filepath.Join(w.dir, net), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := []string{"attention-rollout", "raw-attention", "tibav", "transition-attention"}
	e := w.run(1, "run", "methods.yaml")
	if n := strings.Count(e.stderr, "the model has no attention"); n < len(refused) {
		t.Errorf("%d methods of attention refuse the net without it: %s", n, e.stderr)
	}
	for _, line := range strings.Split(e.stderr, "\n") {
		if !strings.Contains(line, "failed") || !strings.Contains(line, "maps[") {
			continue
		}
		fits := true
		for _, m := range refused {
			fits = fits && !strings.Contains(line, "maps[method="+m+",model=vgg]")
		}
		if fits {
			t.Error(line)
		}
	}
}
