package perturb_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/stagetest"
)

// A meter is a slot that counts forward passes.
type meter struct {
	stages.Slot
	n *atomic.Int64
}

func (meter) Compiled(int, time.Duration) {}

func (m meter) Passed(forward, _ int) { m.n.Add(int64(forward)) }

// counted returns all stages, of which those that perturb images add their forward passes to n.
func counted(n *atomic.Int64) *registry.Set {
	set := registry.Builtin()
	shared := map[*stages.SharedRun]*stages.SharedRun{}
	for _, s := range set.Family("perturb") {
		run, together := s.Run, s.Shared
		s.Run = func(ctx context.Context, params any, e *stages.Env) error {
			e.Slot = meter{e.Slot, n}
			return run(ctx, params, e)
		}
		if together != nil && shared[together] == nil {
			shared[together] = &stages.SharedRun{Run: func(ctx context.Context, parts []stages.Part) error {
				for _, part := range parts {
					part.Env.Slot = meter{part.Env.Slot, n}
				}
				return together.Run(ctx, parts)
			}}
		}
		s.Shared = shared[together]
	}
	return set
}

// oneByOne returns the file of the quickstart's net, which takes one image at once, so that none fills up a
// batch.
func oneByOne(t *testing.T) string {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.ReadFile(filepath.Join(root, "experiments", "quickstart", "vgg.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(m.Proto.Graph.Input, m.Proto.Graph.Output) {
		v.Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 1}
	}
	return modeltest.File(t, m)
}

// passes runs an experiment on three images and two maps of each, and returns the number of forward passes of
// perturbed images.
func passes(t *testing.T, text string) int {
	t.Helper()
	modeltest.Runtime(t)
	text = `
name: passes
axes:
  method:
    random:   {uses: attribute/random, with: {reduce: abs-sum}}
    saliency: {uses: attribute/saliency}
  offset: [0, 0.05, 0.1, 0.25, 0.5]
stages:
  images: {uses: dataset/shapes, with: {count: 3}}
  model:  {uses: model/onnx, with: {path: ` + oneByOne(t) + `, preset: half}}
  maps:   {uses: "${method}", matrix: [method], in: {model: model, images: images}}
` + text
	var n atomic.Int64
	p, err := plan.Parse("passes.yaml", []byte(text), t.TempDir(), counted(&n), plan.Overrides{})
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
	result, err := e.Run(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	if s := result.Summary; s.Programs == 0 || s.Compiling <= 0 || s.Compiling >= s.Took {
		t.Errorf("%d programs were compiled in %v of %v", s.Programs, s.Compiling, s.Took)
	}
	return int(n.Load())
}

// TestForwardPasses checks that an experiment needs as many forward passes of perturbed images as it has
// distinct combinations of image, ranks, substrate and replaced units.
func TestForwardPasses(t *testing.T) {
	const maps = 3 * 2
	cell := func(name, uses, with string) string {
		const in = "{model: model, images: images, maps: maps}"
		const stage = "  %s: {uses: perturb/%s, in: %s, with: {ties: random, %s}}\n"
		return fmt.Sprintf(stage, name, uses, in, with)
	}
	insertion := cell("insertion", "insertion", "steps: 8")
	deletion := cell("deletion", "deletion", "steps: 8")
	scores := `
  rise: {uses: score/rise, in: {insertion: insertion, deletion: deletion}}
  mas:  {uses: score/mas, in: {insertion: insertion, deletion: deletion, maps: maps}}
`
	morf := cell("morf", "ablation", "steps: 8") + "  auc: {uses: score/auc, in: {curves: morf}}\n"
	lerf := cell("lerf", "ablation", "steps: 8, order: lerf")
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"a curve", deletion, 9 * maps},
		{"RISE and MAS", insertion + deletion + scores, 2 * 9 * maps},
		{"RISE, MAS and MoRF", insertion + deletion + scores + morf, 2 * 9 * maps},
		{"LeRF, whose ends are known", insertion + deletion + scores + morf + lerf, (2*9 + 7) * maps},
		{"an insertion's reverse", cell("same", "insertion", "steps: 8, substrate: zero") + lerf, 9 * maps},
		{"other steps", deletion + cell("fine", "deletion", "steps: 16"), 17 * maps},
		{"another substrate", deletion + cell("black", "deletion", "steps: 8, substrate: black"),
			2 * 9 * maps},
		{"one random order for all maps", cell("drawn", "ablation", "steps: 8, order: random"),
			9 * maps},
		{"regions", cell("region", "region", "region: 16, limit: 7"), 8 * maps},
		{"ROAD", cell("road", "road", "shares: [0.1, 0.5]"), 3 * maps},
		// Pixels of equal value, which a saliency map has, come in an order that is drawn for each map.
		{"five offsets", strings.NewReplacer("maps: maps", "maps: moved", "random", "index").Replace(deletion) + `
  moved:
    uses: maps/offset
    matrix: [offset]
    in: {maps: maps}
    with: {of: max, reduce: abs-sum, amount: "${offset}"}
`, 9 * maps},
	} {
		if got := passes(t, tt.text+"publish: []\n"); got != tt.want {
			t.Errorf("%s: %d forward passes, want %d", tt.name, got, tt.want)
		}
	}
}

// TestSubsetPasses checks that ten scores of replaced subsets, of twenty maps of each image, cost the forward
// passes of one perturb/subset, which reads no map.
func TestSubsetPasses(t *testing.T) {
	const images, samples = 3, 12
	text := `
  moved:
    uses: maps/offset
    matrix: [offset]
    in: {maps: maps}
    with: {of: max, reduce: abs-sum, amount: "${offset}"}
  smooth: {uses: maps/smooth, in: {maps: moved}, with: {sigma: 2}}
  subset: {uses: perturb/subset, in: {model: model, images: images}, with: {samples: 12, shares: [0.3]}}
`
	scores := 0
	for _, maps := range []string{"moved", "smooth"} {
		for _, score := range []string{"faithfulness-correlation", "mu-fidelity", "sensitivity-n",
			"infidelity"} {
			for _, with := range []string{"response: logit", "response: probability", "values: magnitude"} {
				if score == "infidelity" {
					with = strings.Replace(with, "values: magnitude", "output: logit", 1)
					with = strings.ReplaceAll(with, "response", "output")
					with += ", map: contribution"
				}
				if score == "faithfulness-correlation" && with == "values: magnitude" {
					continue
				}
				scores++
				text += fmt.Sprintf("  s%d: {uses: score/%s, in: {maps: %s, subsets: subset}, with: {%s}}\n",
					scores, score, maps, with)
			}
		}
	}
	if scores < 2*10 {
		t.Fatalf("%d scores of two kinds of maps", scores)
	}
	if got, want := passes(t, text+"publish: []\n"), (samples+2)*images; got != want {
		t.Errorf("%d forward passes, want %d", got, want)
	}
}
