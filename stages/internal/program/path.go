package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Path integrates the derivative of the explained number along the straight
// line between two values of a layer: it adds up weighted derivatives inside the
// graph, one after the other, so that the sum doesn't depend on the batch and
// only one of them ever leaves.
type Path struct{ *Program }

// Path returns the program that answers q at up to batch places of a path at
// once; its Batch may be smaller, see [Net.AtOnce].
func (n *Net) Path(ctx context.Context, slot stages.Slot, q Question, batch int) (Path, error) {
	p, err := n.keepWalk(ctx, slot, n.AtOnce(ctx, slot, batch), walk{
		Question: q,
		name:     "path",
		feeds: func(b bounds) []feed {
			return append(b.sum(n.Classes), b.around(q.Layer, feed{"from", b.layer(1)}, feed{"to", b.layer(1)}, feed{"at", b.column()})...)
		},
		images: around(q.Layer, line),
		layer:  line,
		sum:    Plain,
	})
	return Path{p}, err
}

// line emits from + at·(to−from).
func line(f *onnx.Fragment) string {
	way := f.Op("Sub", []string{"runexp_to", "runexp_from"})
	return f.Op("Add", []string{"runexp_from", f.Op("Mul", []string{"runexp_at", way})})
}

// Set takes what is explained, the ends of the path, and, for an inner layer, the
// normalised image, on which what goes around the layer depends. It empties the
// sum.
func (p Path) Set(t Target, from, to, image []float32) {
	p.begin(t)
	copy(p.feeds[3].Data, from)
	copy(p.feeds[4].Data, to)
	if len(p.feeds) > 6 {
		copy(p.feeds[6].Data, image)
	}
}

// Run adds the derivatives at so many places to the sum, each with its weight;
// there are at most Batch. [Program.Row] has the answers there.
func (p Path) Run(ctx context.Context, at, weights []float64) error {
	for i := range p.Batch {
		p.feeds[5].Data[i] = float32(at[min(i, len(at)-1)])
	}
	return p.add(ctx, weights)
}

// A Noisy adds up the derivatives of the explained number at an image under
// noise, as [Path] does along a line.
type Noisy struct{ *Program }

// Noisy returns the program that answers q for up to batch noisy images at once,
// fewer as [Net.AtOnce] says, and adds up what s makes of the answers.
func (n *Net) Noisy(ctx context.Context, slot stages.Slot, q Question, s Summand, batch int) (Noisy, error) {
	p, err := n.keepWalk(ctx, slot, n.AtOnce(ctx, slot, batch), walk{
		Question: q,
		name:     "noisy " + string(s),
		feeds: func(b bounds) []feed {
			return append(b.sum(n.Classes), feed{"image", b.images(1)}, feed{"noise", b.images(b.batch)})
		},
		images: func(f *onnx.Fragment) string { return f.Op("Add", []string{"runexp_image", "runexp_noise"}) },
		sum:    s,
	})
	return Noisy{p}, err
}

// Set takes what is explained and the normalised image, and empties the sum.
func (p Noisy) Set(t Target, image []float32) {
	p.begin(t)
	copy(p.feeds[3].Data, image)
}

// Noise returns where the noise of row i goes.
func (p Noisy) Noise(i int) []float32 { return p.row(4, i) }

// Run adds what is made of the derivatives in the first rows to the sum, each with
// its weight.
func (p Noisy) Run(ctx context.Context, weights []float64) error { return p.add(ctx, weights) }

// Sum returns what was added up since the last Set, of the layer's shape.
func (p *Program) Sum() []float32 { return p.returned[0].Data }

// The feeds of every program that adds up, first of all.
func (b bounds) sum(classes int) []feed {
	return []feed{{"targets", []int{1, classes}}, {"weights", b.column()}, {"sum", b.layer(1)}}
}

// begin says what is explained and empties the sum.
func (p *Program) begin(t Target) {
	t.weigh(p.feeds[0].Data)
	clear(p.feeds[2].Data)
	clear(p.returned[0].Data)
}

// add runs a program that adds up. Rows without a weight count nothing.
func (p *Program) add(ctx context.Context, weights []float64) error {
	clear(p.feeds[1].Data)
	for i, w := range weights {
		p.feeds[1].Data[i] = float32(w)
	}
	copy(p.feeds[2].Data, p.returned[0].Data)
	return p.run(ctx)
}
