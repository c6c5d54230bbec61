package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Values returns the value of a layer for each of some normalised images, and the
// value's shape for one; the images themselves if layer is "".
func (n *Net) Values(ctx context.Context, slot stages.Slot, layer string, images [][]float32, batch int) ([][]float32, []int, error) {
	if layer == "" {
		return images, []int{n.Channels, n.Height, n.Width}, nil
	}
	p, err := n.keepWalk(ctx, slot, n.atOnce(ctx, slot, forwards, len(images), batch), walk{
		Question: Question{Layer: layer},
		name:     "values",
		feeds:    func(b bounds) []feed { return []feed{{"images", b.images(b.batch)}} },
		images:   func(*onnx.Fragment) string { return "runexp_images" },
		forward:  true,
	})
	if err != nil {
		return nil, nil, err
	}
	var out [][]float32
	for from := 0; from < len(images); from += p.Batch {
		to := min(from+p.Batch, len(images))
		for i := from; i < to; i++ {
			copy(p.row(0, i-from), images[i])
		}
		if err := p.run(ctx); err != nil {
			return nil, nil, err
		}
		for i := from; i < to; i++ {
			out = append(out, slices.Clone(p.part(p.returned[0], i-from)))
		}
	}
	return out, p.Shape(), nil
}

// A Line classifies what lies along the straight line between two values of a
// layer, as [Path] differentiates it there.
type Line struct{ *Program }

// Line returns the program that classifies up to batch places of a line at once.
func (n *Net) Line(ctx context.Context, slot stages.Slot, layer string, batch int) (Line, error) {
	p, err := n.keepWalk(ctx, slot, n.atOnce(ctx, slot, forwards, batch, batch), walk{
		Question: Question{Layer: layer},
		name:     "line",
		feeds: func(b bounds) []feed {
			return b.around(layer, feed{"from", b.layer(1)}, feed{"to", b.layer(1)}, feed{"at", b.column()})
		},
		images:  around(layer, line),
		layer:   line,
		forward: true,
	})
	return Line{p}, err
}

// Set takes the ends of the line, and, for an inner layer, the normalised image.
func (l Line) Set(from, to, image []float32) { l.set(from, to, image) }

// Run classifies what is at so many places; there are at most Batch.
func (l Line) Run(ctx context.Context, at []float64) error {
	for i := range l.Batch {
		l.feeds[2].Data[i] = float32(at[min(i, len(at)-1)])
	}
	return l.run(ctx)
}

// A MaskedLayer classifies one image, a layer's value for which is seen under
// many masks: v·m + b·(1−m), as [Masked] does with the image.
type MaskedLayer struct{ *Program }

// MaskedLayer returns the program that looks through up to batch masks at once.
// mask returns the shape of a mask, given the shape of the layer's value for one
// image: dimensions of 1 are shared. name names that function.
func (n *Net) MaskedLayer(ctx context.Context, slot stages.Slot, layer, name string, mask func(value []int) []int, batch int) (MaskedLayer, error) {
	p, err := n.keepWalk(ctx, slot, n.atOnce(ctx, slot, forwards, batch, batch), n.masked(layer, name, mask))
	return MaskedLayer{p}, err
}

func (n *Net) masked(layer, name string, mask func(value []int) []int) walk {
	seen := func(f *onnx.Fragment) string { return blend(f, "runexp_baseline", "runexp_value", "runexp_masks") }
	return walk{
		Question: Question{Layer: layer},
		name:     "masked " + name,
		feeds: func(b bounds) []feed {
			masks := feed{"masks", append([]int{b.batch}, mask(b.inner)...)}
			return b.around(layer, feed{"value", b.layer(1)}, feed{"baseline", b.layer(1)}, masks)
		},
		images:  around(layer, seen),
		layer:   seen,
		forward: true,
	}
}

// Set takes the layer's value for the image and what hides it, and, for an inner
// layer, the normalised image, on which what goes around the layer depends.
func (m MaskedLayer) Set(value, baseline, image []float32) { m.set(value, baseline, image) }

// Mask returns where row i's mask goes: 1 keeps a value, 0 replaces it.
func (m MaskedLayer) Mask(i int) []float32 { return m.row(2, i) }

// Run classifies the image under the masks that stand in the rows.
func (m MaskedLayer) Run(ctx context.Context) error { return m.run(ctx) }

// around returns feeds, and the image behind them if layer is an inner one.
func (b bounds) around(layer string, feeds ...feed) []feed {
	if layer != "" {
		feeds = append(feeds, feed{"image", b.images(1)})
	}
	return feeds
}

// around returns what emits the images of a program whose layer has what inner
// emits: the fed image, or this itself.
func around(layer string, inner func(f *onnx.Fragment) string) func(f *onnx.Fragment) string {
	if layer == "" {
		return inner
	}
	return func(*onnx.Fragment) string { return "runexp_image" }
}

// set takes the first two feeds and the one that around may have added.
func (p *Program) set(first, second, image []float32) {
	copy(p.feeds[0].Data, first)
	copy(p.feeds[1].Data, second)
	if len(p.feeds) > 3 {
		copy(p.feeds[3].Data, image)
	}
}
