package maps

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// MeanParams are the parameters of [Mean], which has none.
type MeanParams struct{}

// Mean is the mean of the maps of an item over collapsed axes.
var Mean = stages.New(stages.Def[MeanParams]{
	Name: "maps/mean",
	Doc: `the mean map over collapsed axes, such as noisy draws

Value by value, each map counting alike: over draws of perturb/noise it smooths any
method as SmoothGrad smooths the gradient, for the smooth randomisation test of Hedström
et al., "Sanity Checks Revisited", 2024. It is undefined where one of the maps is.`,
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "maps", Type: stages.Maps, Over: true,
		Doc: "maps of one size"}},
	Outputs: output("one map for all collapsed cells"),
	Declares: func(_ MeanParams, in map[string]stages.Declared) stages.Declared {
		d := stages.Declared{}
		for name, value := range in["maps"] {
			if name != "reference" { // the mean is of several images
				d[name] = value
			}
		}
		return d
	},
	Run: func(ctx context.Context, _ MeanParams, e *stages.Env) error {
		for i := range e.Len() {
			m, err := mean(ctx, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("maps", i, m.Encode())
			e.Done(1)
		}
		return nil
	},
})

// mean returns the mean of item i's maps.
func mean(ctx context.Context, e *stages.Env, i int) (m stages.Tensor, err error) {
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
		for k, v := range t.Float64s() {
			sum[k] += v
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
