package registry

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// maskReaders are what the stages that read masks make of pixels that don't count. Stages of scores leave
// them out.
var maskReaders = map[string]string{
	"model/predict":    "an expression's word mask, which is 0 there",
	"dataset/columns":  "measures objects; tested there",
	"dataset/select":   "passes masks on",
	"perturb/pic":      "its masks are random pixels",
	"perturb/sic":      "its masks are random pixels",
	"perturb/segments": "any numbers are segments",
	"segments/mask":    "any numbers are segments",
	"report/sheet":     "outlines the object alone; tested there",
	"report/text":      "underlines what is marked alone; tested there",
}

// TestIgnoredPixels checks for every stage that scores a map by a mask that pixels that don't count are left
// out: the score is that of the image without them.
func TestIgnoredPixels(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	const h, w, part = 8, 10, 7
	locators := 0
	for _, name := range Builtin().Names() {
		s, _ := Builtin().Lookup(name)
		port := slices.IndexFunc(s.Inputs,
			func(p stages.Port) bool { return p.Type.Name == stages.Masks.Name })
		if port < 0 {
			continue
		}
		if _, known := maskReaders[s.Name]; known {
			continue
		}
		if s.Output("scores") == nil {
			t.Errorf("%s reads masks: does it know pixels that don't count?", s.Name)
			continue
		}
		locators++
		for range 20 {
			values, mask := make([]float64, h*w), make([]uint8, h*w)
			var fewer []float64
			var counted []uint8
			for i := range values {
				values[i], mask[i] = r.NormFloat64(), uint8(r.IntN(2))
				if i%w >= part {
					mask[i] = stages.Ignored
				} else {
					fewer, counted = append(fewer, values[i]), append(counted, mask[i])
				}
			}
			got, want := located(t, s, values, mask, h, w), located(t, s, fewer, counted, h, part)
			if math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: %v, and %v without the pixels that don't count", s.Name, got, want)
			}
		}
	}
	if locators < 5 {
		t.Errorf("%d stages score maps by masks", locators)
	}
}

// TestMasksThatDecideNothing checks that a map has no score by an object that is nowhere or everywhere, in
// any metric of masks or boxes: it would be that of every map.
func TestMasksThatDecideNothing(t *testing.T) {
	const h, w = 4, 5
	values, full, empty, ignored := make([]float64, h*w), make([]uint8, h*w), make([]uint8, h*w),
		make([]uint8, h*w)
	for i := range values {
		values[i], full[i], ignored[i] = float64(i), 1, stages.Ignored
	}
	half := slices.Clone(ignored)
	half[3] = 1
	for _, name := range []string{"score/average-precision", "score/effective-heat-ratio",
		"score/energy-pointing", "score/iou", "score/mass-accuracy", "score/pointing-game",
		"score/rank-accuracy", "score/roc-auc", "score/top-k", "score/weighted-localisation"} {
		s, _ := Builtin().Lookup(name)
		if s.Input("masks") != nil {
			for what, mask := range map[string][]uint8{"full": full, "empty": empty, "ignored": ignored,
				"full, but for ignored pixels": half} {
				if x := located(t, s, values, mask, h, w); !math.IsNaN(x) {
					t.Errorf("%s: a mask that is %s gives %v", name, what, x)
				}
			}
		}
		if s.Input("boxes") != nil {
			for what, box := range map[string][]float32{"full": {0, 0, w, h}, "empty": {2, 2, 2, 2},
				"between pixels": {0.6, 0.6, 1.4, 1.4}} {
				r := stagetest.Run(t, *s, nil, map[string][]stages.Data{
					"maps":  {stagetest.Items(nil, stages.NewTensor(values, h, w).Encode())},
					"boxes": {stagetest.Items(nil, stages.NewTensor(box, 1, 4).Encode())}})
				if x, err := stages.ScalarOf(r.Payloads["scores"][0]); err != nil || !math.IsNaN(x) {
					t.Errorf("%s: a box that is %s gives %v, %v", name, what, x, err)
				}
			}
		}
	}
}

// located returns the score of a map by a mask.
func located(t *testing.T, s *stages.Stage, values []float64, mask []uint8, h, w int) float64 {
	t.Helper()
	r := stagetest.Run(t, *s, nil, map[string][]stages.Data{
		"maps":  {stagetest.Items(nil, stages.NewTensor(values, h, w).Encode())},
		"masks": {stagetest.Items(nil, stages.NewTensor(mask, h, w).Encode())}})
	x, err := stages.ScalarOf(r.Payloads["scores"][0])
	if err != nil {
		t.Fatal(err)
	}
	return x
}
