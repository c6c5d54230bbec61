package model

import (
	"context"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/behaviour"
)

// UnitsParams are the parameters of [Units].
type UnitsParams struct {
	Behaviour string `yaml:"behaviour" doc:"what the net does with its cells" choices:"continuous|conflicting|interaction|pertinent-negatives|shattered|uncertainty|not|and|or|xor"`
	Grid      int    `yaml:"grid" doc:"cells along each side of an image, an even number" min:"2" max:"64"`
	Patch     int    `yaml:"patch" doc:"pixels along each side of a cell, a power of two" min:"1" max:"32"`
	Seed      int    `yaml:"seed" doc:"of the weights" min:"0" max:"1000000000"`
}

func (p UnitsParams) of() behaviour.Params {
	return behaviour.Params{Kind: p.Behaviour, Grid: p.Grid, Patch: p.Patch, Seed: p.Seed}
}

// Validate rejects sizes that no net has.
func (p UnitsParams) Validate() error {
	switch {
	case p.Grid%2 != 0:
		return stages.BadField("grid", "grid is %d: the cells of a row are taken two by two, so that an "+
			"even number is needed", p.Grid)
	case p.Patch&(p.Patch-1) != 0:
		return stages.BadField("patch", "patch is %d: a power of two is needed, for means without rounding",
			p.Patch)
	}
	return nil
}

// Units is the stage that makes a net whose true attribution is known by construction, as the benchmark of
// Lee et al., "XAI-Units: Benchmarking Explainability Methods with Unit Tests", 2025, does. The names of
// behaviours are theirs, except for xor.
var Units = stages.New(stages.Def[UnitsParams]{
	Name: "model/units",
	Doc: `a small net whose true attribution is known

An image is a grid of grey cells. A cell's feature x is its mean grey after
normalisation: −1 for black, 0 for the grey in between, 1 for white. A convolution reads
the cells one by one or in pairs, and a linear layer after ReLU adds up what every place
contributes to the logit of class 0, with its own weight w, a quarter of which are 0. The
logit of class 1 is the negative. Wire the model to dataset/units, which makes its images
and their true attribution.

  continuous           w·x
  conflicting          w·x, unless a second cell c = 1 cancels it
  interaction          w·x; where a second cell is 1, v·x with another weight
  pertinent-negatives  half of the cells are bits, of which an absent one, 0, counts
                       four times as much as a present one, 1; the others are continuous
  shattered            w·x on average, with teeth, so that every other gradient is negative
  uncertainty          w·x, but half of the places add it to both classes alike
  not, and, or, xor    w times a function of one or two truth values, −1 or 1; 0 is unknown,
                       as in Kleene's logic

Lee et al. 2025 (XAI-Units).`,
	Version:  1,
	Relation: stages.Whole,
	Outputs: []stages.Port{{Name: "model", Type: stages.Model,
		Doc: "the model; facts as of model/onnx, and those by which dataset/units knows the net"}},
	Defaults: UnitsParams{Behaviour: "continuous", Grid: 8, Patch: 4, Seed: 1},
	Run: func(_ context.Context, p UnitsParams, e *stages.Env) error {
		n, err := behaviour.New(p.of())
		if err != nil {
			return err
		}
		m, err := n.Model()
		if err != nil {
			return err
		}
		payload, err := m.Encode()
		if err != nil {
			return err
		}
		e.Set("model", payload)
		f := factsOf(m.Spec, "for\nagainst")
		f["units"], f["grid"], f["patch"] = p.Behaviour, strconv.Itoa(p.Grid), strconv.Itoa(p.Patch)
		f["weights"] = strconv.Itoa(p.Seed)
		e.SetFacts("model", f)
		return nil
	},
})
