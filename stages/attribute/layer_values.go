package attribute

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A layerValue is the value of a layer for an item's image.
type layerValue struct {
	item   int
	image  []float32 // normalised
	target program.Target
	layer  string    // of the model's graph, "" for the image itself
	values []float32 // in the model's layout
	planes planes    // as channels of places
}

// values calls use with the value of the layer for every item.
func (p Tapped) values(ctx context.Context, e *stages.Env, n *program.Net,
	use func(at layerValue) error) error {
	return p.activations(ctx, e, n, func(at layerValue) (err error) {
		if at.target, err = p.target(e, at.item, n); err != nil {
			return err
		}
		return use(at)
	})
}

// activations is values for methods that explain no class: there is no target.
func (p Tapped) activations(ctx context.Context, e *stages.Env, n *program.Net,
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
		at, err := p.planesOf(n, doubles(v), shape)
		if err != nil {
			return err
		}
		value := layerValue{item: i, image: images[i], layer: q.Layer, values: v, planes: at.own(e, i, n)}
		if err := use(value); err != nil {
			return err
		}
	}
	return nil
}

// ends are the ends of the paths of all items.
type ends struct {
	images [][]float32 // normalised
	to     [][]float32 // the layer's value for each
	from   baselines   // the layer's value for its baseline, or zeros
	shape  []int       // of the layer's value for one image
}

// ends returns the ends of the items' paths, which begin at zeros, at the layer's value for a black image, or
// at that for the image on the port baselines.
func (p Tapped) ends(ctx context.Context, e *stages.Env, n *program.Net, baseline string) (ends, error) {
	q, err := p.question(ctx, e, n, relevance.Policy{})
	if err != nil {
		return ends{}, err
	}
	images, err := normalised("images", e, n)
	if err != nil {
		return ends{}, err
	}
	zeros := baseline == "zero" && !e.Wired("baselines")
	from := baselines(images[:min(1, len(images))])
	if !zeros || n.Text == nil {
		if from, err = baselinesOf(e, n, baseline); err != nil {
			return ends{}, err
		}
	}
	all, shape, err := n.Values(ctx, e.Slot, q.Layer, slices.Concat(images, from), e.Batch)
	if err != nil {
		return ends{}, err
	}
	x := ends{images, all[:len(images)], all[len(images):], shape}
	if !zeros {
		return x, nil
	}
	if n.Text != nil && p.Layer == "input" {
		x.from, err = withoutWords(e, n, x.to)
		return x, err
	}
	x.from = baselines{make([]float32, len(x.from[0]))}
	return x, nil
}

// normalised returns the normalised images of all items on a port.
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
