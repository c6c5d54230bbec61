package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Curve turns one image into another pixel by pixel, in the order of a rank map, and classifies what is
// between. The images and the map are set once an image; a step is a single number.
type Curve struct{ *Program }

// Curve returns the program that classifies up to batch steps at once. Rank maps are exact up to 2²⁴ pixels.
func (n *Net) Curve(ctx context.Context, slot stages.Slot, batch int) (Curve, error) {
	p, err := n.classifier(ctx, slot, "curve", batch, lower.Request{
		Inputs: func(s lower.Shapes) []lower.IO {
			return []lower.IO{
				lower.In("from", s.ImageShape(1)...), lower.In("to", s.ImageShape(1)...),
				lower.In("ranks", 1, 1, n.Height, n.Width),
				lower.In("replaced", s.Batch, 1, 1, 1),
			}
		},
		Images: func(f *onnx.Fragment) string {
			// The number k of replaced pixels minus a pixel's rank is at least 1 if the pixel is replaced and
			// at most 0 if not, so that its mask is max(k − rank, 0) − max(k − rank − 1, 0). Clip would do
			// the same but differs from opset to opset.
			d := f.Op("Sub", []string{"runexp_replaced", "runexp_ranks"})
			less := f.Op("Sub", []string{d, f.Floats("step", []float32{1})})
			m := f.Op("Sub", []string{f.Op("Relu", []string{d}), f.Op("Relu", []string{less})})
			return blend(f, "runexp_from", "runexp_to", m)
		},
	})
	return Curve{p}, err
}

// Set takes the normalised images at the curve's ends [C,H,W], and the ranks [H,W]: the pixel of rank 0 is
// replaced first.
func (c Curve) Set(from, to, ranks []float32) {
	c.inputs[0].Set(from)
	c.inputs[1].Set(to)
	c.inputs[2].Set(ranks)
}

// Run classifies the images with these numbers of pixels replaced, Batch at most.
func (c Curve) Run(ctx context.Context, replaced []int) error {
	c.write(len(replaced))
	steps := c.inputs[3].Write()
	for i := range steps {
		steps[i] = float32(replaced[min(i, len(replaced)-1)])
	}
	return c.run(ctx)
}
