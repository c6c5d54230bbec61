package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

const devicesYAML = `name: devices
seed: 7
axes:
  model:
    resnet: {path: %q}
    vit: {path: %q}
  method:
    occlusion: {uses: attribute/occlusion, with: {window: 16, stride: 16}}
    rise: {uses: attribute/rise, with: {masks: 21, cells: 4}}
    saliency: {uses: attribute/saliency}
    guided: {uses: attribute/guided-backprop}
    gradients: {uses: attribute/integrated-gradients, with: {steps: 5}}
    deeplift: {uses: attribute/deeplift}
  order: [morf, lerf]
stages:
  images: {uses: dataset/shapes, with: {count: 5, seed: 1000003}}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: half}}
  accuracy: {uses: score/top-1, in: {model: model, images: images, labels: images.labels}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}, store: %s}
  insertion: {uses: perturb/insertion, in: {model: model, images: images, maps: maps}, with: {steps: 8}}
  deletion: {uses: perturb/deletion, in: {model: model, images: images, maps: maps}, with: {steps: 8}}
  ablation: {uses: perturb/ablation, matrix: [order], in: {model: model, images: images, maps: maps}, with: {order: "${order}", steps: 5}}
  auc: {uses: score/auc, in: {curves: ablation}}
  mas: {uses: score/mas, in: {insertion: insertion, deletion: deletion, maps: maps}}
  mass: {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  leaderboard: {uses: report/leaderboard, in: {scores: {metric: {mas: mas.difference, mass: mass}}}, over: all, with: {rank: method}}
  ablations: {uses: report/table, in: {values: auc}, over: all, with: {rows: [model, order], columns: [method]}}
  sheet: {uses: report/sheet, in: {maps: maps, images: images}, over: [method], with: {items: 2, columns: method}}
publish: [leaderboard, ablations, sheet, accuracy]
`

// However the work is cut up and wherever it is done, the review folder has the same
// bytes. Five images don't fill a batch, batches of 3 don't fill chunks of 2.
func TestDevicesBatchesChunks(t *testing.T) {
	runtimeOrSkip(t)
	ways := []string{
		"--devices cpu",
		"--devices cpu:0",
		"--devices cpu:0,cpu:1",
		"--devices cpu:0,cpu:1 --batch 1 --chunk 1",
		"--batch 3 --chunk 2",
		"--devices cpu:0 --batch 5 --chunk 3",
		"--devices cpu:0,cpu:1 --batch 64 --chunk 64",
		"--devices cpu:0,cpu:1,cpu:2,cpu:3,cpu:4,cpu:5,cpu:6,cpu:7",
	}
	resnet, vit := net(t, "resnet"), net(t, "vit")
	w := newWorld(t, map[string]string{"devices.yaml": fmt.Sprintf(devicesYAML, resnet, vit, "keep")})
	w.run(0, "run", "devices.yaml", "--store", "first", "--out", "artifacts/first")
	for i, way := range stagetest.Sample(t, 4, ways) {
		t.Run(way, func(t *testing.T) {
			out := fmt.Sprintf("artifacts/%d", i)
			w.run(0,
				append([]string{"run", "devices.yaml", "--store", fmt.Sprintf("store%d", i), "--out", out},
					strings.Fields(way)...)...)
			same(t, w.path("artifacts/first"), w.path(out))
		})
	}
	t.Run("maps that aren't kept", func(t *testing.T) {
		none := newWorld(t, map[string]string{"devices.yaml": fmt.Sprintf(devicesYAML, resnet, vit, "none")})
		none.run(0, "run", "devices.yaml", "--out", "artifacts/first", "--devices", "cpu:0,cpu:1", "--chunk",
			"2")
		// The experiment sets what it keeps.
		none.write("artifacts/first/experiment.yaml", []byte(w.read("artifacts/first/experiment.yaml")))
		same(t, w.path("artifacts/first"), none.path("artifacts/first"))
	})
}
