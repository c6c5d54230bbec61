package maps

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// MeanParams are the parameters of [Mean].
type MeanParams struct {
	Normalise string `yaml:"normalise" key:"added" doc:"what each map is divided by before: nothing, the sum of its magnitudes, or the largest" choices:"none|sum|max"`
}

// Mean is the mean of the maps of an item over collapsed axes.
var Mean = stages.New(stages.Def[MeanParams]{
	Name: "maps/mean",
	Doc: `the mean map over collapsed axes, as of draws or methods

Value by value, each map counting alike: over draws of perturb/noise it smooths any
method as SmoothGrad smooths the gradient, for the smooth randomisation test of Hedström
et al., "Sanity Checks Revisited", 2024. It is undefined where one of the maps is.

Over methods it is an ensemble. Their maps have different units, so normalise them:

  ensemble: {uses: maps/mean, in: {maps: maps}, over: [method], with: {normalise: sum}}

Signs stay: where one method's maps have signs and another's don't, evidence against the
class cancels only that of the first. A map of zeros stays one. Undefined values are
left out of sum and max.`,
	Defaults: MeanParams{Normalise: "none"},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "maps", Type: stages.Maps, Over: true,
		Doc: "maps of one size"}},
	Outputs: output("one map for all collapsed cells"),
	Declares: func(p MeanParams, in map[string]stages.Declared) stages.Declared {
		d := stages.Declared{}
		for name, value := range in["maps"] {
			// The mean is of several images, and what is normalised is no quantity of an output.
			if name != "reference" && (p.Normalise == "none" || name == "target") {
				d[name] = value
			}
		}
		return d
	},
	Run: func(ctx context.Context, p MeanParams, e *stages.Env) error {
		for i := range e.Len() {
			m, err := mean(ctx, p.Normalise, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("maps", i, m.Encode())
			e.Done(1)
		}
		return nil
	},
})

// mean returns the mean of item i's maps, each normalised.
func mean(ctx context.Context, normalise string, e *stages.Env, i int) (m stages.Tensor, err error) {
	var sum []float64
	var shape []int
	n := 0
	for member, err := range e.All(i, "maps") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return m, err
		}
		t, err := stages.DecodeTensor(member[0].Data)
		if err != nil {
			return m, err
		}
		switch {
		case sum == nil:
			sum, shape = make([]float64, t.Len()), t.Shape
		case !slices.Equal(t.Shape, shape):
			return m, fmt.Errorf("maps of shapes %v and %v have no mean", shape, t.Shape)
		}
		values := t.Float64s()
		by := divisor(normalise, values)
		for k, v := range values {
			sum[k] += v / by
		}
		n++
	}
	if n == 0 {
		return m, fmt.Errorf("none of the collapsed cells has a map of it")
	}
	out := make([]float32, len(sum))
	for k, v := range sum {
		out[k] = float32(v / float64(n))
	}
	return stages.NewTensor(out, shape...), nil
}

// divisor returns what a map is divided by: 1 if it has nothing else.
func divisor(normalise string, values []float64) float64 {
	sum, largest := 0.0, 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, largest = sum+math.Abs(v), max(largest, math.Abs(v))
		}
	}
	switch {
	case normalise == "sum" && sum > 0:
		return sum
	case normalise == "max" && largest > 0:
		return largest
	}
	return 1
}
