package attribute_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// A meter is a slot that counts forward passes.
type meter struct {
	stages.Slot
	count func(forward int)
}

func (meter) Compiled(int, time.Duration) {}

func (m meter) Passed(forward, _ int) { m.count(forward) }

// ran runs an experiment on four images of shapes and the quickstart's vgg. It returns the rows of the
// batches that stages of the families attribute and perturb run, and the scores of score/rank-correlation.
func ran(t *testing.T, text string) (rows int, scores []float64) {
	t.Helper()
	modeltest.Runtime(t)
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	text = `
name: subsets
axes:
  target: {second: {class: "predicted:2"}, label: {class: label}, three: {class: "3"}, contrast: {class: "3-1"}}
  method:
    kernel-shap:      {uses: attribute/kernel-shap, with: {samples: 60}}
    lime:             {uses: attribute/lime, with: {samples: 60}}
    feature-ablation: {uses: attribute/feature-ablation}
    shapley-sampling: {uses: attribute/shapley-sampling, with: {samples: 2}}
stages:
  images: {uses: dataset/shapes, with: {count: 4}}
  model:  {uses: model/onnx, with: {path: ` + filepath.Join(root, "experiments", "quickstart", "vgg.onnx") +
		`, preset: half}}
` + text + "publish: []\n"
	var mu sync.Mutex
	set := registry.Builtin()
	for _, family := range []string{"attribute", "perturb", "score"} {
		for _, s := range set.Family(family) {
			run := s.Run
			s.Run = func(ctx context.Context, params any, e *stages.Env) error {
				e.Slot = meter{e.Slot, func(forward int) {
					mu.Lock()
					defer mu.Unlock()
					rows += forward
				}}
				err := run(ctx, params, e)
				for _, o := range e.Outputs {
					if v, bad := stages.ScalarOf(o.Data); s.Name == "score/rank-correlation" && bad == nil {
						mu.Lock()
						scores = append(scores, v)
						mu.Unlock()
					}
				}
				return err
			}
		}
	}
	p, err := plan.Parse("subsets.yaml", []byte(text), t.TempDir(), set, plan.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := pipeline.Engine{Store: s, Devices: []stages.Device{{Class: "cpu"}},
		MadeBy: func(class string) string { return class }, Compiler: func() string { return "test" },
		OnEvent: func(e pipeline.Event) {
			if e.Err != nil {
				t.Errorf("%v", e.Err)
			}
		}}
	if _, err := e.Run(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	return rows, scores
}

// TestSolversExplainTheTarget checks that methods on subsets explain their target: the map is that with the
// class on the port targets, and that of occlusion whose windows are the regions.
func TestSolversExplainTheTarget(t *testing.T) {
	_, scores := ran(t, `
  class:
    uses: model/predict
    matrix: [target]
    in: {model: model, images: images, labels: images.labels}
    with: {target: "${target.class}"}
  maps:
    uses: "${method}"
    matrix: [method, target]
    in: {model: model, images: images, labels: images.labels}
    with: {target: "${target.class}"}
  wired: {uses: "${method}", matrix: [method], in: {model: model, images: images, targets: class}}
  equal: {uses: score/rank-correlation, in: {maps: maps, other: wired}, with: {values: signed}}
  windows:
    uses: attribute/occlusion
    matrix: [target]
    in: {model: model, images: images, labels: images.labels}
    with: {window: 16, stride: 16, target: "${target.class}"}
  same:
    uses: score/rank-correlation
    in: {maps: maps, other: windows}
    only: [{method: feature-ablation}]
    with: {values: signed}
`)
	if len(scores) < 40 { // some of the 80 are of equal maps, and made once
		t.Errorf("%d scores", len(scores))
	}
	for _, v := range scores {
		if !(math.Abs(v-1) <= 1e-9) {
			t.Fatalf("maps that should be equal have the correlation %v: %v", v, scores)
		}
	}
}

// TestSolversShare checks that methods and scores that read the same subsets share their passes, wired or
// not.
func TestSolversShare(t *testing.T) {
	const one = `
  drops: {uses: attribute/feature-ablation, in: {model: model, images: images}}
`
	const more = one + `
  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: single, unit: region, region: 16, substrate: zero}
  probability:
    uses: attribute/feature-ablation
    in: {model: model, images: images}
    with: {output: probability, share: true}
  wired:  {uses: attribute/feature-ablation, in: {model: model, images: images, subsets: subset}}
  maps:   {uses: attribute/saliency, in: {model: model, images: images}}
  single: {uses: score/single-deletion, in: {maps: maps, subsets: subset}}
`
	alone, _ := ran(t, one)
	shared, _ := ran(t, more)
	saliency, _ := ran(t, "  maps: {uses: attribute/saliency, in: {model: model, images: images}}\n")
	if alone < 4*(16+2) || shared != alone+saliency {
		t.Errorf("one method takes %d rows and saliency %d, but five stages together %d", alone, saliency,
			shared)
	}
}

// TestSolversDraw checks that a method refuses subsets of another draw before it runs.
func TestSolversDraw(t *testing.T) {
	const text = `
name: draw
stages:
  images: {uses: dataset/shapes, with: {count: 4}}
  model:  {uses: model/onnx, with: {path: net.onnx, preset: half}}
  subset: {uses: perturb/subset, in: {model: model, images: images}}
  maps:   {uses: attribute/lime, in: {model: model, images: images, subsets: subset}, with: {samples: 5}}
publish: []
`
	_, err := plan.Parse("draw.yaml", []byte(text), t.TempDir(), registry.Builtin(), plan.Overrides{})
	if err == nil || !strings.Contains(err.Error(), "samples is 5, but the port subsets is wired") {
		t.Errorf("the error is %v", err)
	}
}
