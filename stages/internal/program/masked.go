package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Masked classifies one image under many masks: x·m + b·(1−m), with the image x, a baseline b and a mask m
// in every row: [H,W], shared by the channels, or [C,H,W].
type Masked struct{ *Program }

// Masked returns the program for up to batch masks [H,W] at once.
func (n *Net) Masked(ctx context.Context, slot stages.Slot, batch int) (Masked, error) {
	return n.masked(ctx, slot, "masked", batch, 1)
}

// MaskedValues returns the program for up to batch masks [C,H,W] at once.
func (n *Net) MaskedValues(ctx context.Context, slot stages.Slot, batch int) (Masked, error) {
	return n.masked(ctx, slot, "masked values", batch, n.Channels)
}

func (n *Net) masked(ctx context.Context, slot stages.Slot, name string, batch, planes int) (Masked, error) {
	p, err := n.classifier(ctx, slot, name, batch, lower.Request{
		Inputs: func(s lower.Shapes) []lower.IO {
			return []lower.IO{lower.In("image", s.ImageShape(1)...), lower.In("baseline", s.ImageShape(1)...),
				lower.In("masks", s.Batch, planes, n.Height, n.Width)}
		},
		Images: func(f *onnx.Fragment) string {
			return blend(f, "runexp_baseline", "runexp_image", "runexp_masks")
		},
	})
	return Masked{p}, err
}

// Set takes the normalised image and the baseline [C,H,W].
func (m Masked) Set(image, baseline []float32) {
	m.inputs[0].Set(image)
	m.inputs[1].Set(baseline)
}

// Mask returns the input of row i's mask: 1 keeps a pixel, 0 replaces it.
func (m Masked) Mask(i int) []float32 { return m.row(2, i) }

// Run classifies the image under the masks in the rows.
func (m Masked) Run(ctx context.Context) error { return m.run(ctx) }

// blend emits a·(1−m) + b·m, which is a where m is 0 and b where m is 1, to the last bit; a + m·(b−a) isn't.
func blend(f *onnx.Fragment, a, b, m string) string {
	one := f.Floats("one", []float32{1})
	rest := f.Op("Sub", []string{one, m})
	return f.Op("Add", []string{f.Op("Mul", []string{a, rest}), f.Op("Mul", []string{b, m})})
}
