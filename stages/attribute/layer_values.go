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
func (p Tapped) values(ctx context.Context, e *stages.Env, n *program.Net,
	use func(at layerValue) error) error {
	q, err := p.question(ctx, e, n, relevance.Policy{})
	if err != nil {
		return err
	}
	images, err := normalised("images", e, n)
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
	from   baselines   // the layer's value for its baseline, or zeros
	shape  []int       // of the layer's value for one image
}

// ends returns the ends of the items' paths, from zeros or from the layer's value for a black image, or for
// what is wired to baselines.
func (p Tapped) ends(ctx context.Context, e *stages.Env, n *program.Net, baseline string) (ends, error) {
	q, err := p.question(ctx, e, n, relevance.Policy{})
	if err != nil {
		return ends{}, err
	}
	images, err := normalised("images", e, n)
	if err != nil {
		return ends{}, err
	}
	from, err := baselinesOf(e, n, baseline)
	if err != nil {
		return ends{}, err
	}
	all, shape, err := n.Values(ctx, e.Slot, q.Layer, slices.Concat(images, from), e.Batch)
	if err != nil {
		return ends{}, err
	}
	x := ends{images, all[:len(images)], all[len(images):], shape}
	if baseline == "zero" && !e.Wired("baselines") {
		x.from = baselines{make([]float32, len(x.from[0]))}
	}
	return x, nil
}

// answers returns the explained number at places of a line, which is set.
func (p Tapped) answers(ctx context.Context, n *program.Net, line program.Line, at []float64,
	t program.Target) ([]float64, error) {
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

// normalised returns the normalised image of every item on a port.
func normalised(port string, e *stages.Env, n *program.Net) ([][]float32, error) {
	images := make([][]float32, e.Len())
	for i := range images {
		images[i] = make([]float32, n.Size())
		if err := imageOn(port, e, i, n, images[i]); err != nil {
			return nil, err
		}
	}
	return images, nil
}
