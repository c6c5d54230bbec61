package score

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// AgreementParams are the parameters that the metrics of two maps' agreement have in common.
type AgreementParams struct {
	Values    string `yaml:"values" doc:"a pixel's relevance: the sum over channels, or its magnitude" choices:"signed|magnitude"`
	Direction string `yaml:"direction" doc:"which is better: lower in sanity checks, where other is the map of a random model; higher where the maps should agree" choices:"lower|higher"`
}

// agreement declares a metric of two maps of an item, a number from −1 to 1.
func agreement[P any](d stages.Def[P], common func(P) AgreementParams,
	of func(p P, x, y []float64, height, width int) (float64, error)) stages.Stage {
	d.Version, d.Relation = 1, stages.Each
	d.Inputs = []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps"},
		{Name: "other", Type: stages.Maps, Doc: "maps of the same images to compare them with"},
	}
	d.Outputs = []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the agreement, in [−1,1]"}}
	d.Facts = func(p P, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Direction: stages.Direction(common(p).Direction), Low: -1, High: 1,
			Tolerance: 2e-3, ItemTolerance: orderJump}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	}
	d.Run = func(_ context.Context, p P, e *stages.Env) error {
		for i := range e.Len() {
			x, y, height, width, err := bothMaps(e, i, "maps", "other", common(p).Values)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			agreement, err := of(p, x, y, height, width)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(agreement))
			e.Done(1)
		}
		return nil
	}
	return stages.New(d)
}

// bothMaps reads the maps of item i on two ports, of one size: a number a pixel.
func bothMaps(e *stages.Env, i int, one, other, values string) (x, y []float64, height, width int,
	err error) {
	var v [2][]float64
	var size [2][2]int
	for k, port := range []string{one, other} {
		t, err := stages.DecodeTensor(e.In(port, i))
		if err == nil {
			v[k], size[k][0], size[k][1], err = metric.Values(t, values)
		}
		if err != nil {
			return nil, nil, 0, 0, fmt.Errorf("port %s: %w", port, err)
		}
	}
	if size[0] != size[1] {
		return nil, nil, 0, 0, fmt.Errorf("maps of %d×%d and %d×%d pixels can't be compared", size[0][0],
			size[0][1], size[1][0], size[1][1])
	}
	return v[0], v[1], size[0][0], size[0][1], nil
}
