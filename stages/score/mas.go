package score

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// MASParams are the parameters of [MAS].
type MASParams struct {
	Variant string `yaml:"variant" doc:"undefined scores: undefined (paper), or 0.5 as in the authors' code (official)" choices:"paper|official"`
	Values  string `yaml:"values" doc:"how the channels of a map are reduced, which must match the stages that made the curves: magnitude is |sum|, signed the sum" choices:"magnitude|signed"`
}

// MAS scores maps by insertion and deletion, with a penalty where the map's magnitudes don't match the
// model's response, after Walker, Simon, Chen and Ewetz, "Attribution Quality Metrics with Magnitude
// Alignment", IJCAI 2024.
var MAS = stages.New(stages.Def[MASParams]{
	Name: "score/mas",
	Doc: `magnitude-aligned insertion and deletion scores

Like score/rise on the normalised curve, with a penalty at each point: the distance
between the share of the response and the share of the map's total reached so far. The
order of steps is that of the authors' code. Walker et al., IJCAI 2024, equations 4 to
6. A constant map has no order and therefore no score, unless its curves follow a
random order (ties: random).`,
	Version:  3,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "insertion", Type: stages.Curves, Doc: "curves of perturb/insertion, of the same maps"},
		{Name: "deletion", Type: stages.Curves, Doc: "curves of perturb/deletion, of the same maps"},
		{Name: "maps", Type: stages.Maps, Doc: "the maps of the curves"},
	},
	Outputs: []stages.Port{
		{Name: "insertion", Type: stages.Scores, Doc: "area under the penalised insertion curve"},
		{Name: "deletion", Type: stages.Scores, Doc: "area under the penalised deletion curve"},
		{Name: "difference", Type: stages.Scores, Doc: "insertion minus deletion"},
	},
	Defaults: MASParams{Variant: paper, Values: metric.Magnitude},
	Variants: []stages.Variant{{
		Item: "maps whose total is zero or not a number, images that score like their substrate, " +
			"constant curves",
		Default: paper,
		Differs: "official: the curve is replaced by a straight line, so that the score is 0.5 and the " +
			"difference 0; paper: undefined; of other constant maps, whose order the code leaves to an " +
			"unstable sort, both are",
		Golden: "mas_rise",
	}},
	Facts: func(p MASParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		for _, port := range []string{"insertion", "deletion"} {
			if _, err := stepOf(in[port]); err != nil {
				return nil, fmt.Errorf("%s: %w", port, err)
			}
		}
		// The normalisation divides by a difference of probabilities.
		return threeScores(stages.Measure{Unit: "share", Tolerance: 1e-3, ItemTolerance: orderJump,
			Variant: tag(p.Variant)}, in)
	},
	Run: func(_ context.Context, p MASParams, e *stages.Env) error {
		for i := range e.Len() {
			area, err := aligned(p, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			putThree(e, i, area)
		}
		return nil
	},
})

// aligned returns the insertion and the deletion score of item i.
func aligned(p MASParams, e *stages.Env, i int) (area [2]float64, err error) {
	t, err := stages.DecodeTensor(e.In("maps", i))
	if err != nil {
		return area, err
	}
	values, height, width, err := metric.Values(t, p.Values)
	if err != nil {
		return area, err
	}
	order := metric.Order(values)
	for _, protocol := range []metric.Protocol{metric.Insertion, metric.Deletion} {
		port := protocol.String()
		step, err := stepOf(e.Facts(port))
		if err != nil {
			return area, fmt.Errorf("%s: %w", port, err)
		}
		raw, err := responseOf(e.Facts(port), e.In(port, i), "probability")
		if err != nil {
			return area, fmt.Errorf("%s: %w", port, err)
		}
		if points := metric.Points(len(order), step); len(raw) != points {
			return area, fmt.Errorf("%s: a curve of %d points doesn't match a map of %d×%d pixels: it "+
				"needs %d at %d pixels per step", port, len(raw), height, width, points, step)
		}
		response, defined := metric.MonotoneOf(raw, protocol)
		density := metric.DensityResponse(values, order, step, protocol)
		curve, _, aligned := metric.Penalise(response, density, protocol)
		area[protocol] = metric.Area(curve)
		// The official code orders a constant map by an unstable sort, so its curve is unspecified; only a
		// map without a total has a score independent of its curve.
		unordered := slices.ContainsFunc(raw, math.IsNaN) && !slices.ContainsFunc(density, math.IsNaN)
		if p.Variant == paper && !(defined && aligned) || unordered {
			area[protocol] = math.NaN()
		}
	}
	return area, nil
}
