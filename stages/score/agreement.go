package score

import (
	"context"
	"fmt"
	"slices"

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
			var v [2][]float64
			var size [2][2]int
			var err error
			for k, port := range []string{"maps", "other"} {
				var t stages.Tensor
				if t, err = stages.DecodeTensor(e.In(port, i)); err == nil {
					v[k], size[k][0], size[k][1], err = metric.Values(t, common(p).Values)
				}
				if err != nil {
					return fmt.Errorf("item %q: port %s: %w", e.Calls[i].ID, port, err)
				}
			}
			if !slices.Equal(size[0][:], size[1][:]) {
				return fmt.Errorf("item %q: maps of %d×%d and %d×%d pixels can't be compared", e.Calls[i].ID,
					size[0][0], size[0][1], size[1][0], size[1][1])
			}
			x, err := of(p, v[0], v[1], size[0][0], size[0][1])
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	}
	return stages.New(d)
}
