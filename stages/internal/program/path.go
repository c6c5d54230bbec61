package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Path integrates the derivative of the explained number along the straight line between two values of a
// layer: it adds up weighted derivatives inside the graph, one after the other, so that the sum doesn't
// depend on the batch and only the sum is returned.
type Path struct{ *Program }

// Path returns the program that answers q at up to batch points of a path at once; its Batch may be smaller,
// see [Net.AtOnce].
func (n *Net) Path(ctx context.Context, slot stages.Slot, q lower.Question, batch int) (Path, error) {
	p, err := n.questioned(ctx, slot, "path", n.AtOnce(ctx, slot, batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs: func(s lower.Shapes) []lower.IO {
			ends := []lower.IO{lower.In("from", s.LayerShape(1)...), lower.In("to", s.LayerShape(1)...),
				lower.In("at", s.ColumnShape()...)}
			return withImage(s, q.Layer, append(sumInputs(s, n.explained()), ends...))
		},
		Images:     imageOr(q.Layer, line),
		Substitute: line,
		Sum:        lower.Plain,
	})
	return Path{p}, err
}

// line emits from + at·(to−from).
func line(f *onnx.Fragment) string {
	way := f.Op("Sub", []string{"runexp_to", "runexp_from"})
	return f.Op("Add", []string{"runexp_from", f.Op("Mul", []string{"runexp_at", way})})
}

// Set takes the target, the ends of the path, and, for an inner layer, the normalised image, on which values
// outside the layer depend. It clears the sum.
func (p Path) Set(t Target, from, to, image []float32) {
	p.begin(t)
	p.inputs[3].Set(from)
	p.inputs[4].Set(to)
	if len(p.inputs) > 6 {
		p.inputs[6].Set(image)
	}
}

// Run adds the derivatives at these points, Batch at most, to the sum, each with its weight. [Program.Row]
// has the answers there.
func (p Path) Run(ctx context.Context, at, weights []float64) error {
	writePoints(p.inputs[5].Write(), at)
	return p.add(ctx, weights)
}

// A Noisy adds up the derivatives of the explained number at an image under noise, as [Path] does along a
// line. Of a text the value of the layer gets the noise.
type Noisy struct{ *Program }

// Noisy returns the program that answers q for up to batch noisy images at once, or for fewer: see
// [Net.AtOnce]. It adds up the derivatives as sum says.
func (n *Net) Noisy(ctx context.Context, slot stages.Slot, q lower.Question, sum lower.Summand,
	batch int) (Noisy, error) {
	if n.Text != nil {
		return n.noisyLayer(ctx, slot, q, sum, batch)
	}
	p, err := n.questioned(ctx, slot, "noisy "+string(sum), n.AtOnce(ctx, slot, batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs: func(s lower.Shapes) []lower.IO {
			return append(sumInputs(s, n.explained()), lower.In("image", s.ImageShape(1)...),
				lower.In("noise", s.ImageShape(s.Batch)...))
		},
		Images: noised,
		Sum:    sum,
	})
	return Noisy{p}, err
}

// noised emits image + noise.
func noised(f *onnx.Fragment) string { return f.Op("Add", []string{"runexp_image", "runexp_noise"}) }

// noisyLayer returns the program that adds noise to the value of the layer.
func (n *Net) noisyLayer(ctx context.Context, slot stages.Slot, q lower.Question, sum lower.Summand,
	batch int) (Noisy, error) {
	p, err := n.questioned(ctx, slot, "noisy layer "+string(sum), n.AtOnce(ctx, slot, batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs: func(s lower.Shapes) []lower.IO {
			return append(sumInputs(s, n.explained()), lower.In("value", s.LayerShape(1)...),
				lower.In("noise", s.LayerShape(s.Batch)...), lower.In("image", s.ImageShape(1)...))
		},
		Images: lower.Read("image"),
		Substitute: func(f *onnx.Fragment) string {
			return f.Op("Add", []string{"runexp_value", "runexp_noise"})
		},
		Sum: sum,
	})
	return Noisy{p}, err
}

// Set takes the target, what gets noise, and the normalised image, which is the same unless it is a text. It
// clears the sum.
func (p Noisy) Set(t Target, value, image []float32) {
	p.begin(t)
	p.inputs[3].Set(value)
	if len(p.inputs) > 5 {
		p.inputs[5].Set(image)
	}
}

// Noise returns the input of row i's noise.
func (p Noisy) Noise(i int) []float32 { return p.row(4, i) }

// Run adds the derivatives of the first rows to the sum, each with its weight.
func (p Noisy) Run(ctx context.Context, weights []float64) error { return p.add(ctx, weights) }

// Sum returns the sum since the last Set, of the layer's shape.
func (p *Program) Sum() []float32 { return p.outputs[0].Data }

// sumInputs are the first inputs of every program that adds up.
func sumInputs(s lower.Shapes, explained int) []lower.IO {
	return []lower.IO{lower.In("targets", 1, explained), lower.In("weights", s.ColumnShape()...),
		lower.In("sum", s.LayerShape(1)...)}
}

// begin sets the target and clears the sum.
func (p *Program) begin(t Target) {
	t.write(p.inputs[0].Write())
	clear(p.outputs[0].Data)
}

// add runs a program that adds up. Rows without a weight count nothing.
//
// The sum so far is an input, so that its bits don't depend on the batch. A device isn't sent it: there each
// run begins at zero, and the sums of runs are added here.
func (p *Program) add(ctx context.Context, weights []float64) error {
	p.write(len(weights))
	rows := p.inputs[1].Write()
	clear(rows)
	for i, w := range weights {
		rows[i] = float32(w)
	}
	sum := p.outputs[0].Data
	if !p.carried() {
		copy(p.inputs[2].Write(), sum)
		return p.run(ctx)
	}
	before := slices.Clone(sum)
	if err := p.run(ctx); err != nil {
		return err
	}
	for k, v := range before {
		sum[k] += v
	}
	return nil
}

// writePoints writes the points of a path into a batch's rows. Rows beyond them get the last one.
func writePoints(rows []float32, at []float64) {
	for i := range rows {
		rows[i] = float32(at[min(i, len(at)-1)])
	}
}
