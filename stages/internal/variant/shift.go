package variant

import (
	"context"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Shift takes images that are brighter by a constant, which it subtracts before the base's first layer: of
// the shifted image it computes what the base does of the image. Kindermans et al., "The (Un)reliability of
// Saliency Methods", 2017, change the bias of the first layer instead, which is the same function.
type Shift struct {
	By float64 `json:"by"` // in pixel values from 0 to 1
}

// Name returns the name of the stage.
func (Shift) Name() string { return "model/shift" }

// Spec returns the specification of the model, which is the base's.
func (p Shift) Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error) {
	if base.Spec.Text != nil {
		return modelfile.Spec{}, &OtherItemsError{"the model takes texts, and the ids of their " +
			"tokens have no values in between: model/noise changes their embedding"}
	}
	return trial(ctx, p, base, base.Spec)
}

// Graph returns the base's graph after a subtraction.
func (p Shift) Graph(_ context.Context, base lower.Source, batch int) (*onnx.Graph, error) {
	g, _, err := graphOf(base, batch)
	if err != nil {
		return nil, err
	}
	s, e := base.Spec, editor{g}
	by := make([]float32, s.Channels)
	for c := range by {
		by[c] = float32(p.By * s.Scale / s.Std[c])
	}
	shifted, weight := e.Fresh(s.Input+"/shifted"), onnx.FloatTensor(e.Fresh(s.Input+"/shift"), by,
		s.Broadcast()...)
	e.AddWeight(weight)
	e.reread(s.Input, shifted)
	e.insert(0, e.node("Sub", []string{s.Input, weight.Name}, shifted, e.Shape(s.Input)))
	return g, nil
}
