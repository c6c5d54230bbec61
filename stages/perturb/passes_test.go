package perturb_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// passes runs an experiment on three images and two maps of each, and returns the number of forward passes of
// perturbed images.
func passes(t *testing.T, text string) int {
	t.Helper()
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	text = `
name: passes
axes:
  method:
    random:   {uses: attribute/random, with: {reduce: abs-sum}}
    saliency: {uses: attribute/saliency}
  offset: [0, 0.05, 0.1, 0.25, 0.5]
stages:
  images: {uses: dataset/shapes, with: {count: 3}}
  model:  {uses: model/onnx, with: {path: ` + filepath.Join(root, "experiments", "quickstart", "vgg.onnx") +
		`, preset: half}}
  maps:   {uses: "${method}", matrix: [method], in: {model: model, images: images}}
` + text
	p, err := plan.Parse("passes.yaml", []byte(text), t.TempDir(), registry.Builtin(), plan.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var n atomic.Int64
	e := pipeline.Engine{Store: s, Devices: []stages.Device{{Class: "cpu"}},
		MadeBy: func(class string) string { return class }, Compiler: func() string { return "test" },
		OnEvent: func(e pipeline.Event) {
			if e.Err != nil {
				t.Errorf("%v", e.Err)
			}
		}}
	if _, err := e.Run(program.CountPasses(t.Context(), &n), p, nil); err != nil {
		t.Fatal(err)
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
