package variant

import (
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// GridPG takes grids of images as a whole. A model with global pooling pools over the larger input. A model
// with dense layers over places gets them as convolutions, whose answers are averaged over the places.
type GridPG struct{ Cells }

// Name returns the name of the stage.
func (GridPG) Name() string { return "model/gridpg" }

// Spec returns the specification of the model for grids.
func (p GridPG) Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error) {
	if err := p.fits(base); err != nil {
		return modelfile.Spec{}, err
	}
	g, _, err := graphOf(base, 0)
	if err != nil {
		return modelfile.Spec{}, err
	}
	return trial(ctx, p, base, p.spec(base.Spec, g))
}

// Graph returns the graph for a batch of grids.
func (p GridPG) Graph(ctx context.Context, base lower.Source, batch int) (*onnx.Graph, error) {
	g, batch, err := graphOf(base, batch)
	if err != nil {
		return nil, err
	}
	s := p.spec(base.Spec, g)
	pooled, err := lower.Resized(ctx, g.Clone(), s, batch)
	if err == nil && onnx.Size(pooled.Shape(s.Output)) == batch*s.Classes {
		return pooled, nil
	}
	if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
		return nil, err
	}
	if err := convolve(g, s.Final, s.Output, []int{batch, s.Classes}); err != nil {
		return nil, fmt.Errorf("GridPG has no meaning for the model: it has neither global pooling nor "+
			"dense layers that convolutions can replace: %w", err)
	}
	if g, err = lower.Resized(ctx, g, s, batch); err != nil {
		return nil, fmt.Errorf("GridPG has no meaning for a model whose layers fix the size of its "+
			"images, as position embeddings do: %w", err)
	}
	return g, nil
}
