package attribute

import (
	"math"

	"github.com/runexp/runexp/stages"
)

// FeatureAblationParams are the parameters of [FeatureAblation].
type FeatureAblationParams struct {
	Replaced
	Draw string `yaml:"draw" doc:"one unit after the other" choices:"single"`
}

// FeatureAblation replaces one unit after the other.
var FeatureAblation = solvingMethod(stages.Def[FeatureAblationParams]{
	Name: "attribute/feature-ablation",
	Doc: `the drop of the output when a unit is replaced

The value of a pixel is the explained output minus that for the image without its region
or segment. attribute/occlusion slides a window instead, so that a pixel has the mean of
several drops. The passes are those of perturb/subset, one for each unit and 2: single
deletion shares them, and whatever else replaces the same units one by one. Zeiler and
Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014, section 4.2.`,
	Version: 1,
	Declares: func(p FeatureAblationParams, in map[string]stages.Declared) stages.Declared {
		return p.declared(false, in)
	},
	Defaults: FeatureAblationParams{Replaced: replaced(), Draw: "single"},
})

func (p FeatureAblationParams) draw() string { return p.Draw }

func (p FeatureAblationParams) solve(g game) (values []float64, fit float64) {
	values = make([]float64, g.Units)
	fill(values, math.NaN())
	for row, y := range g.responses {
		for k := range values {
			if g.Has(row, k) {
				values[k] = g.image - y
			}
		}
	}
	return values, 0
}
