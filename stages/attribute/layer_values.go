package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A layerValue is what an item's image is at the layer.
type layerValue struct {
	item   int
	image  []float32 // normalised
	target program.Target
	layer  string    // of the model's graph, "" for the image itself
	values []float32 // as the model has them
	planes planes    // as channels of places
}

// values calls use with the layer's value for every item.
func (p Tapped) values(ctx context.Context, e *stages.Env, n *program.Net, use func(at layerValue) error) error {
	q, err := p.question(ctx, e, n, relevance.Policy{})
	if err != nil {
		return err
	}
	images, err := normalised(e, n)
	if err != nil {
		return err
	}
	values, shape, err := n.Values(ctx, e.Slot, q.Layer, images, n.Fit(len(images), e.Batch))
	if err != nil {
		return err
	}
	for i, v := range values {
		at, err := p.planesOf(doubles(v), shape)
		if err != nil {
			return err
		}
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		if err := use(layerValue{i, images[i], t, q.Layer, v, at}); err != nil {
			return err
		}
	}
	return nil
}

// ends are where the paths of all items begin and end.
type ends struct {
	images [][]float32 // normalised
	to     [][]float32 // the layer's value for each
	from   []float32   // where all paths begin
	shape  []int       // of the layer's value for one image
}

// ends returns the ends of the items' paths, from zeros or from the layer's value for
// a black image.
func (p Tapped) ends(ctx context.Context, e *stages.Env, n *program.Net, baseline string) (ends, error) {
	q, err := p.question(ctx, e, n, relevance.Policy{})
	if err != nil {
		return ends{}, err
	}
	images, err := normalised(e, n)
	if err != nil {
		return ends{}, err
	}
	black := make([]float32, n.Size())
	for k := range black {
		black[k] = n.Black(k / (n.Height * n.Width))
	}
	all, shape, err := n.Values(ctx, e.Slot, q.Layer, append(images[:len(images):len(images)], black), e.Batch)
	if err != nil {
		return ends{}, err
	}
	x := ends{images, all[:len(images)], all[len(images)], shape}
	if baseline == "zero" {
		x.from = make([]float32, len(x.from))
	}
	return x, nil
}

// answers returns the explained number at places of a line, which is set.
func (p Tapped) answers(ctx context.Context, n *program.Net, line program.Line, at []float64, t program.Target) ([]float64, error) {
	responses := make([]float64, 0, len(at))
	for some := range slices.Chunk(at, line.Batch) {
		if err := line.Run(ctx, some); err != nil {
			return nil, err
		}
		for row := range some {
			responses = append(responses, p.response(n, line.Row(row), t))
		}
	}
	return responses, nil
}

// normalised returns the normalised image of every item.
func normalised(e *stages.Env, n *program.Net) ([][]float32, error) {
	images := make([][]float32, e.Len())
	for i := range images {
		images[i] = make([]float32, n.Size())
		if err := image(e, i, n, images[i]); err != nil {
			return nil, err
		}
	}
	return images, nil
}
