package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/stagetest"
)

// goldenMain is the command with a data set of the images and labels of the file $GOLDEN in the place of
// dataset/shapes.
func goldenMain() {
	dataset.Shapes.Run = func(_ context.Context, _ any, e *stages.Env) error {
		arrays, err := stagetest.Arrays(os.Getenv("GOLDEN"))
		if err != nil {
			return err
		}
		x, y := arrays["x_batch"], arrays["y_batch"]
		size := x.Len() / x.Shape[0]
		for i, c := range e.Calls {
			number, err := strconv.Atoi(c.ID[strings.LastIndexByte(c.ID, '-')+1:])
			if err != nil {
				return err
			}
			image := x.Float32s()[number*size : (number+1)*size]
			e.Put("images", i, stages.NewTensor(image, x.Shape[1:]...).Encode())
			e.Put("labels", i, stages.NewTensor(y.Int64s()[number:number+1], 1).Encode())
			e.Put("masks", i, stages.NewTensor(make([]uint8, size/3), x.Shape[2:]...).Encode())
		}
		return nil
	}
	os.Exit(newCommand().start(os.Args[1:]))
}

// TestOfficialGAE runs Global Attribution Evaluation as an experiment on the images of the official code, and
// compares its scores: those of one mosaic on three nets, and of a batch of two.
func TestOfficialGAE(t *testing.T) {
	for _, tt := range []struct {
		file, net, positive string
		batch               int
	}{
		{"smallcnn_bs4.npz", "smallcnn", "bottom-right", 4},
		{"smallcnn_bs8.npz", "smallcnn", "bottom-right", 8},
		{"timm_resnet_basic_bs4.npz", "timm_resnet_basic_bn", "top-right", 4},
		{"timm_vit_bs4.npz", "timm_vit_op17", "bottom-left", 4},
	} {
		t.Run(tt.file, func(t *testing.T) {
			shared := stagetest.Shared(t, "golden")
			path := filepath.Join(shared, "gae", tt.file)
			a, err := stagetest.Arrays(path)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, map[string]string{"gae.yaml": fmt.Sprintf(officialGAE, tt.batch,
				filepath.Join(shared, "models", tt.net+".onnx"), tt.positive, tt.batch)})
			command := func(args ...string) {
				t.Helper()
				cmd := w.prepare("runexp-golden", args...)
				cmd.Env = append(cmd.Env, "GOLDEN="+path)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("runexp %s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
			command("run", "gae.yaml")
			for _, method := range []string{"abslrp", "ixg", "const"} {
				command("get", "gae.yaml", "gae[method="+method+"]", "-o", method)
				for port, key := range map[string]string{"total": "GAE", "consistency": "LC",
					"contrastiveness": "C", "faithfulness": "LCF", "robustness": "LCR"} {
					scores := strings.NewReader(w.read(method + "/" + port + ".csv"))
					rows, err := csv.NewReader(scores).ReadAll()
					if err != nil || len(rows) != 1+tt.batch/4 {
						t.Fatalf("%s %s: %d rows: %v", method, port, len(rows), err)
					}
					for m, want := range a[method+"_"+key].Float64s() {
						row := rows[1+m]
						got, err := strconv.ParseFloat(row[len(row)-1], 64)
						if err != nil || !(math.Abs(got-want) <= 1e-4) {
							t.Errorf("%s: mosaic %d: %s is %s, want %v", method, m, port, row[len(row)-1],
								want)
						}
					}
				}
			}
		})
	}
}

const officialGAE = `name: gae
axes:
  method:
    const:  {uses: attribute/constant, with: {reduce: none}}
    ixg:    {uses: attribute/input-x-gradient, with: {reduce: none}}
    abslrp: {uses: attribute/abslrp, with: {variant: official, reduce: none}}
  step: [1, 2, 3, 4, 5, 6, 7, 8, 9]
stages:
  images:  {uses: dataset/shapes, with: {count: %d, size: 32}}
  model:   {uses: model/onnx, with: {path: "%s", preset: unit}}
  guess:   {uses: model/predict, in: {model: model, images: images}}
  mosaics:
    uses: mosaic/gae
    in: {model: model, images: images, targets: guess.targets, labels: images.labels}
    with: {variant: official, order: given, positive: %s, batch: %d}
  masking:
    uses: perturb/gradient-masking
    in: {model: model, images: mosaics.positives, targets: mosaics.targets}
    with: {variant: official}
  masked:
    uses: perturb/masked
    matrix: [step]
    in: {model: model, images: mosaics.positives, removals: {order: {morf: masking.morf, lerf: masking.lerf}}}
    with: {step: "${step}"}
    store: none
  maps:
    uses: "${method}"
    matrix: [method]
    in: {model: model, images: mosaics.positives, targets: mosaics.targets}
  masked-maps:
    uses: "${method}"
    matrix: [method]
    in: {model: model, images: masked, targets: mosaics.targets}
    store: none
  mosaic-maps:
    uses: "${method}"
    matrix: [method]
    in: {model: model, images: mosaics, targets: mosaics.targets}
  gae:
    uses: score/gae
    in: {maps: maps, masked_maps: masked-maps, mosaic_maps: mosaic-maps, outputs: masking.outputs,
         impact: masking.impact, scoring: mosaics.scoring}
    over: [order, step]
    with: {variant: official}
  table: {uses: report/table, in: {values: gae.total}, over: all, with: {rows: [method]}}
publish: [table]
`
