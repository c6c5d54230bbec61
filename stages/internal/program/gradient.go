package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Gradient returns the derivative of the explained number for a batch of
// images, together with the value it was taken at.
type Gradient struct{ *Program }

// Gradient returns the program that answers q for up to batch images at once.
func (n *Net) Gradient(ctx context.Context, slot stages.Slot, q Question, batch int) (Gradient, error) {
	p, err := n.keepBackward(ctx, slot, n.Fit(batch, batch), walk{
		Question: q,
		name:     "gradient",
		feeds: func(b bounds) []feed {
			return []feed{{"targets", []int{b.batch, n.Classes}}, {"images", b.images(b.batch)}}
		},
		images: func(*onnx.Fragment) string { return "runexp_images" },
	})
	return Gradient{p}, err
}

// Explain says what is explained of row i.
func (g Gradient) Explain(i int, t Target) { t.weigh(g.row(0, i)) }

// Image returns where row i's normalised image goes.
func (g Gradient) Image(i int) []float32 { return g.row(1, i) }

// Run differentiates what stands in the rows.
func (g Gradient) Run(ctx context.Context) error { return g.run(ctx) }

// Gradient returns row i's derivative, of the layer's shape. It is overwritten by
// the next run.
func (g Gradient) Gradient(i int) []float32 { return g.part(g.returned[0], i) }

// Value returns the layer's value for row i.
func (g Gradient) Value(i int) []float32 { return g.part(g.returned[1], i) }

// Values returns the value of a layer for each of some normalised images.
func (n *Net) Values(ctx context.Context, slot stages.Slot, layer string, images [][]float32, batch int) ([][]float32, error) {
	g, err := n.Gradient(ctx, slot, Question{Layer: layer, Rules: "gradient"}, n.Fit(len(images), batch))
	if err != nil {
		return nil, err
	}
	var out [][]float32
	for from := 0; from < len(images); from += g.Batch {
		to := min(from+g.Batch, len(images))
		for i := from; i < to; i++ {
			copy(g.Image(i-from), images[i])
		}
		if err := g.Run(ctx); err != nil {
			return nil, err
		}
		for i := from; i < to; i++ {
			out = append(out, slices.Clone(g.Value(i-from)))
		}
	}
	return out, nil
}
