package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Values returns the value of a layer for each of some normalised images, and the value's shape for one; the
// images themselves if layer is "".
func (n *Net) Values(ctx context.Context, slot stages.Slot, layer string, images [][]float32,
	batch int) ([][]float32, []int, error) {
	if layer == "" {
		return images, []int{n.Channels, n.Height, n.Width}, nil
	}
	p, err := n.Activated(ctx, slot, layer, n.atOnce(ctx, slot, forwards, len(images), batch))
	if err != nil {
		return nil, nil, err
	}
	var out [][]float32
	for from := 0; from < len(images); from += p.Batch {
		to := min(from+p.Batch, len(images))
		for i := from; i < to; i++ {
			copy(p.Image(i-from), images[i])
		}
		if err := p.Run(ctx); err != nil {
			return nil, nil, err
		}
		for i := from; i < to; i++ {
			out = append(out, slices.Clone(p.Value(i-from)))
		}
	}
	return out, p.Shape(), nil
}

// Activated classifies images, and returns the value of a layer too.
type Activated struct{ Forward }

// Activated returns the program for up to batch images at once.
func (n *Net) Activated(ctx context.Context, slot stages.Slot, layer string, batch int) (Activated, error) {
	p, err := n.questioned(ctx, slot, "values", batch, activated(layer))
	return Activated{Forward{p}}, err
}

func activated(layer string) lower.Request {
	return lower.Request{
		Kind:     lower.Forward,
		Question: lower.Question{Layer: layer},
		Inputs:   lower.ImagesInput,
		Images:   lower.Images,
	}
}

// Value returns the layer's value for row i of the last run. The next overwrites it.
func (p Activated) Value(i int) []float32 { return p.part(p.outputs[0], i) }

// A Line classifies what lies along the straight line between two values of a layer, as [Path] differentiates
// it there.
type Line struct{ *Program }

// Line returns the program that classifies up to batch points of a line at once.
func (n *Net) Line(ctx context.Context, slot stages.Slot, layer string, batch int) (Line, error) {
	p, err := n.questioned(ctx, slot, "line", n.atOnce(ctx, slot, forwards, batch, batch), lower.Request{
		Kind:     lower.Forward,
		Question: lower.Question{Layer: layer},
		Inputs: func(s lower.Shapes) []lower.IO {
			ends := []lower.IO{lower.In("from", s.LayerShape(1)...), lower.In("to", s.LayerShape(1)...),
				lower.In("at", s.ColumnShape()...)}
			return withImage(s, layer, ends)
		},
		Images:     imageOr(layer, line),
		Substitute: line,
	})
	return Line{p}, err
}

// Set takes the ends of the line, and, for an inner layer, the normalised image.
func (l Line) Set(from, to, image []float32) { l.set(from, to, image) }

// Run classifies the values at these points, Batch at most.
func (l Line) Run(ctx context.Context, at []float64) error {
	l.write(len(at))
	writePoints(l.inputs[2].Write(), at)
	return l.run(ctx)
}

// A MaskedLayer classifies one image with its value at a layer under many masks: v·m + b·(1−m), as [Masked]
// does with the image.
type MaskedLayer struct{ *Program }

// MaskedLayer returns the program for up to batch masks at once. mask returns the shape of a mask, given the
// shape of the layer's value for one image: dimensions of 1 are shared. name names that function.
func (n *Net) MaskedLayer(ctx context.Context, slot stages.Slot, layer, name string,
	mask func(value []int) []int, batch int) (MaskedLayer, error) {
	p, err := n.questioned(ctx, slot, "masked "+name, n.atOnce(ctx, slot, forwards, batch, batch),
		maskedLayer(layer, mask))
	return MaskedLayer{p}, err
}

func maskedLayer(layer string, mask func(value []int) []int) lower.Request {
	seen := func(f *onnx.Fragment) string {
		return blend(f, "runexp_baseline", "runexp_value",
			"runexp_masks")
	}
	return lower.Request{
		Kind:     lower.Forward,
		Question: lower.Question{Layer: layer},
		Inputs: func(s lower.Shapes) []lower.IO {
			masks := append([]int{s.Batch}, mask(s.Layer)...)
			return withImage(s, layer, []lower.IO{lower.In("value", s.LayerShape(1)...),
				lower.In("baseline", s.LayerShape(1)...), lower.In("masks", masks...)})
		},
		Images:     imageOr(layer, seen),
		Substitute: seen,
	}
}

// Set takes the layer's value for the image and the baseline, and, for an inner layer, the normalised image,
// on which values outside the layer depend.
func (m MaskedLayer) Set(value, baseline, image []float32) { m.set(value, baseline, image) }

// Mask returns the input of row i's mask: 1 keeps a value, 0 replaces it.
func (m MaskedLayer) Mask(i int) []float32 { return m.row(2, i) }

// Run classifies the image under the masks in the rows.
func (m MaskedLayer) Run(ctx context.Context) error { return m.run(ctx) }

// withImage returns inputs, and behind them the image if layer is an inner one: values outside the layer
// depend on it.
func withImage(s lower.Shapes, layer string, inputs []lower.IO) []lower.IO {
	if layer != "" {
		inputs = append(inputs, lower.In("image", s.ImageShape(1)...))
	}
	return inputs
}

// imageOr returns what emits the images of a program whose layer is substituted: the image of withImage if
// the layer is an inner one, else the substitute.
func imageOr(layer string, substitute func(f *onnx.Fragment) string) func(f *onnx.Fragment) string {
	if layer == "" {
		return substitute
	}
	return lower.Read("image")
}

// set takes the first two inputs, and the one that withImage may have added.
func (p *Program) set(first, second, image []float32) {
	p.inputs[0].Set(first)
	p.inputs[1].Set(second)
	if len(p.inputs) > 3 {
		p.inputs[3].Set(image)
	}
}
