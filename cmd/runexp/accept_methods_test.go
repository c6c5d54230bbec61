package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestEveryMethod runs every attribution method through the engine, on slots as they
// are, on a net of convolutions and a vision transformer: each makes its maps, but those
// that check refuses, such as those that look at attention, which the first net hasn't.
func TestEveryMethod(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	// Fewer steps than the defaults, where a method takes many.
	few := map[string]string{
		"guided-ig": "steps: 4", "rise": "masks: 20", "agi": "steps: 2, classes: 2",
		"integrated-gradients": "steps: 4", "left-ig": "steps: 4",
		"transition-attention": "steps: 4", "smoothgrad": "samples: 2", "vargrad": "samples: 2",
		"occlusion": "window: 16, stride: 16",
	}
	var methods strings.Builder
	for _, s := range registry.Builtin().Family("attribute") {
		name := strings.TrimPrefix(s.Name, "attribute/")
		if s.Output("maps") == nil || name == "external" {
			continue
		}
		fmt.Fprintf(&methods, "    %s: {uses: %s, with: {%s}}\n", name, s.Name, few[name])
	}
	// What fits neither net, or one of them.
	for i, odd := range []string{
		"saliency, with: {target: '12'}", "saliency, with: {target: predicted-predicted:13}",
		"saliency, with: {layer: /6/Relu_output_0}",
		"grad-cam, with: {layer: logits}", "ablation-cam, with: {layer: logits}",
		"occlusion, with: {window: 4, layer: logits}",
		"attention-rollout, with: {start: 5}", "transition-attention, with: {steps: 2, start: 5}",
		"tibav, with: {start: 5}",
		"abslrp, with: {ablation: values-only}", "abslrp, with: {ablation: patch}",
	} {
		fmt.Fprintf(&methods, "    odd-%d: {uses: attribute/%s}\n", i, odd)
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
	refused := map[string]bool{}
	diagnostic :=
		regexp.MustCompile(`axes\.method\.([\w-]+)\.\S+: (?:attribute/\S+: )?model\[(model=\w+)\]: `)
	for _, m := range diagnostic.FindAllStringSubmatch(w.run(2, "check", "methods.yaml").stderr, -1) {
		refused["maps[method="+m[1]+","+m[2]+"]"] = true
	}
	for _, cell := range []string{"maps[method=tibav,model=vgg]", "maps[method=odd-0,model=vit]"} {
		if !refused[cell] {
			t.Errorf("check accepts %s", cell)
		}
	}
	failed := map[string]bool{}
	for _, e := range w.run(1, "run", "methods.yaml", "--json").events(t) {
		if strings.HasPrefix(e.Cell, "maps[") && (e.Event == "failed" || e.Event == "blocked") {
			failed[e.Cell] = true
		}
	}
	if d := cmp.Diff(refused, failed); d != "" {
		t.Errorf("refused by check (-), by run (+):\n%s", d)
	}
}
