package dataset

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/behaviour"
)

// UnitsParams are the parameters of [Units].
type UnitsParams struct {
	Count int    `yaml:"count" doc:"how many images" key:"-" min:"1" max:"10000000"`
	First int    `yaml:"first" doc:"index of the first draw" key:"-" min:"0" max:"1000000000"`
	Seed  int    `yaml:"seed" doc:"of the sequence of draws" min:"0" max:"1000000000"`
	Truth string `yaml:"truth" doc:"shapley: the Shapley value of each cell with respect to the reference; intended: what XAI-Units expects, which differs in conflicting and interaction" choices:"shapley|intended"`
}

// Units draws images for a net of model/units, with their true attribution: the unit tests of Lee et al.,
// "XAI-Units: Benchmarking Explainability Methods with Unit Tests", 2025, on images.
//
// Facts: height, width, classes and labels (newline-separated names), on every port.
var Units = stages.New(stages.Def[UnitsParams]{
	Name: "dataset/units",
	Doc: `images for a net of model/units, with their true attribution

Grids of grey cells on which the net decides for a class by at least 0.25. truth is the
attribution that is right by construction, of the class's logit less that of the other
class, on which alone probabilities depend: each cell's Shapley value, where cells that
don't take part are those of the reference image. The reference is grey, and white on
the bits of pertinent-negatives; for methods with a baseline it is an input. The pixels
of a cell share its value equally. masks is 1 where truth isn't 0.

With targets, methods explain that difference. Without, they explain the predicted
class's logit, whose true attribution is half of it, except in uncertainty.

  net:    {uses: model/units, with: {behaviour: and}}
  images: {uses: dataset/units, in: {model: net}, with: {count: 24}}
  maps:
    uses: attribute/integrated-gradients
    in: {model: net, images: images, targets: images.targets}
  truth:  {uses: score/truth, in: {maps: maps, truth: images.truth}}

Lee et al. 2025 (XAI-Units).`,
	Version:  1,
	Relation: stages.Each,
	Inputs:   []stages.Port{{Name: "model", Type: stages.Model, Doc: "a net of model/units"}},
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "f32 [3,height,width], of equal channels"},
		{Name: "labels", Type: stages.Labels, Doc: "the class, which the net predicts"},
		{Name: "truth", Type: stages.Maps, Doc: "the true attribution of the class"},
		{Name: "masks", Type: stages.Masks, Doc: "1 where truth isn't 0"},
		{Name: "targets", Type: stages.Targets, Doc: "the difference between the class and the other one"},
		{Name: "reference", Type: stages.Images, Doc: "the image that says nothing, for the port baselines"},
		{Name: "segments", Type: stages.Segments, Doc: "the cells"},
	},
	Defaults: UnitsParams{Count: 64, Seed: 1, Truth: "shapley"},
	Sources: func(p UnitsParams, _ []string) ([]stages.Source, error) {
		sources := make([]stages.Source, 0, p.Count)
		for i := range p.Count {
			sources = append(sources, stages.Source{ID: fmt.Sprintf("%06d", p.First+i),
				Note: fmt.Sprintf(unitsNote, p.Seed, p.First+i)})
		}
		return sources, nil
	},
	Facts: func(_ UnitsParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := in["model"]
		f := stages.Facts{"height": m["height"], "width": m["width"], "classes": m["classes"],
			"labels": m["labels"]}
		return map[string]stages.Facts{"images": f, "labels": f, "truth": f, "masks": f, "targets": f,
			"reference": f, "segments": f}, nil
	},
	Run: runUnits,
})

// unitsNote identifies one draw.
const unitsNote = "seed=%d index=%d"

// netOf returns the net that the facts of a model describe.
func netOf(f stages.Facts) (*behaviour.Net, error) {
	if f["units"] == "" {
		return nil, errors.New("the model isn't one of model/units, whose true attribution is known")
	}
	p := behaviour.Params{Kind: f["units"]}
	for name, v := range map[string]*int{"grid": &p.Grid, "patch": &p.Patch, "weights": &p.Seed} {
		var err error
		if *v, err = strconv.Atoi(f[name]); err != nil {
			return nil, fmt.Errorf("the model's fact %s: %w", name, err)
		}
	}
	return behaviour.New(p)
}

func runUnits(ctx context.Context, p UnitsParams, e *stages.Env) error {
	n, err := netOf(e.Facts("model"))
	if err != nil {
		return err
	}
	side := n.Side()
	reference := stages.NewTensor(n.Pixels(n.Reference()), 3, side, side).Encode()
	segments := stages.NewTensor(n.Segments(), side, side).Encode()
	for i := range e.Len() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var seed, index int
		if _, err := fmt.Sscanf(e.Source(i).Note, unitsNote, &seed, &index); err != nil {
			return fmt.Errorf("the note %q describes no draw: %w", e.Source(i).Note, err)
		}
		cells, class := n.Draw(seed, index)
		truth := n.Shapley(cells, class)
		if p.Truth == "intended" {
			truth = n.Intended(cells, class)
		}
		truth = n.Spread(truth)
		mask := make([]uint8, len(truth))
		for k, v := range truth {
			if v != 0 {
				mask[k] = 1
			}
		}
		e.Put("images", i, stages.NewTensor(n.Pixels(cells), 3, side, side).Encode())
		e.Put("labels", i, stages.NewTensor([]int64{int64(class)}, 1).Encode())
		e.Put("truth", i, stages.NewTensor(truth, side, side).Encode())
		e.Put("masks", i, stages.NewTensor(mask, side, side).Encode())
		e.Put("targets", i, stages.NewTensor([]int64{int64(class), int64(1 - class)}, 2).Encode())
		e.Put("reference", i, reference)
		e.Put("segments", i, segments)
		e.Done(1)
	}
	return nil
}
