package program

import (
	"context"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
)

// A Gradient returns the derivative of the explained number for a batch of images, and the value at which it
// was taken; for several questions, all of them with one forward pass.
type Gradient struct{ *Program }

// Gradient returns the program that answers q, and other questions, for up to batch images at once; its Batch
// may be smaller, see [Net.AtOnce]. Its bits don't depend on the other questions if all of them can share a
// forward pass, see [Net.OneForward].
func (n *Net) Gradient(ctx context.Context, slot stages.Slot, q lower.Question, batch int,
	also ...lower.Question) (Gradient, error) {
	p, err := n.questioned(ctx, slot, "gradient", n.AtOnce(ctx, slot, batch), n.gradient(q, also...))
	return Gradient{p}, err
}

func (n *Net) gradient(q lower.Question, also ...lower.Question) lower.Request {
	return lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Also:     also,
		Inputs: func(s lower.Shapes) []lower.IO {
			inputs := n.targetsAndImages(s)
			for _, q := range append([]lower.Question{q}, also...) {
				if !slices.ContainsFunc(inputs, func(v lower.IO) bool { return v.Name == q.CountsInput() }) {
					inputs = append(inputs, lower.In(q.CountsInput(), inputs[0].Shape...))
				}
			}
			return inputs
		},
		Images: lower.Images,
	}
}

// targetsAndImages are the inputs of programs that explain a batch of images.
func (n *Net) targetsAndImages(s lower.Shapes) []lower.IO {
	return []lower.IO{lower.In("targets", s.Batch, n.explained()),
		lower.In("images", s.ImageShape(s.Batch)...)}
}

// Explain sets the target of row i.
func (g Gradient) Explain(i int, t Target) { t.write(g.row(0, i)) }

// Counts returns the input of how much each class counts for row i, in questions with counts of that name.
func (g Gradient) Counts(name string, i int) []float32 {
	input := lower.Question{Counts: name}.CountsInput()
	return g.row(slices.IndexFunc(g.signature.Inputs, func(v lower.IO) bool { return v.Name == input }), i)
}

// Image returns the input of row i's normalised image.
func (g Gradient) Image(i int) []float32 { return g.row(1, i) }

// Run differentiates at the images in the rows.
func (g Gradient) Run(ctx context.Context) error { return g.run(ctx) }

// Gradient returns row i's derivative, of the layer's shape. The next run overwrites it.
func (g Gradient) Gradient(i int) []float32 { return g.part(g.outputs[0], i) }

// Value returns the layer's value for row i.
func (g Gradient) Value(i int) []float32 { return g.part(g.outputs[1], i) }

// A Result is the result of a question for one image. The next run overwrites it.
type Result struct {
	Gradient, Value []float32 // at the layer
	Shape           []int     // of both
	Seed            []float32 // what the backward pass starts with, a number a class; nil for the derivative

	// Of rules that return shares, what constants have of the number: see [relevance.Shares]. Total is nil if
	// it is unknown.
	Shares []Plane
	Total  []float32
}

// A Plane has a number for each place of a grid, row by row.
type Plane struct {
	Values        []float32
	Height, Width int
}

// Result returns the result of the k-th question for row i: the first is number 0, and the others follow.
func (g Gradient) Result(k, i int) Result {
	number := ""
	if k > 0 {
		number = strconv.Itoa(k + 1)
	}
	shape := g.signature.Outputs[g.output("derivative"+number)].Shape[1:]
	return Result{g.named("derivative"+number, i), g.named("value"+number, i), slices.Clone(shape),
		g.named("began"+number, i), g.shares(number, i), g.named("total"+number, i)}
}

// shares returns the planes of a question's shares for row i.
func (g Gradient) shares(number string, i int) (planes []Plane) {
	for k := 0; ; k++ {
		at := g.output(lower.SharesOutput(number, k))
		if at < 0 {
			return planes
		}
		shape := g.signature.Outputs[at].Shape
		planes = append(planes, Plane{g.part(g.outputs[at], i), shape[1], shape[2]})
	}
}

// Keep replaces the slices, which the next run overwrites, by copies.
func (r *Result) Keep() {
	r.Gradient, r.Value = slices.Clone(r.Gradient), slices.Clone(r.Value)
	r.Seed, r.Total = slices.Clone(r.Seed), slices.Clone(r.Total)
	for k := range r.Shares {
		r.Shares[k].Values = slices.Clone(r.Shares[k].Values)
	}
}

// A Slope returns the derivative of the explained number at values that replace a layer's own.
type Slope struct{ *Program }

// Slope returns the program that answers q for up to batch values at once, or for fewer: see [Net.AtOnce].
func (n *Net) Slope(ctx context.Context, slot stages.Slot, q lower.Question, batch int) (Slope, error) {
	images := lower.Images
	if q.Layer == "" {
		images = lower.Read("values")
	}
	p, err := n.questioned(ctx, slot, "slope", n.AtOnce(ctx, slot, batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs: func(s lower.Shapes) []lower.IO {
			inputs := []lower.IO{lower.In("targets", s.Batch, n.explained()),
				lower.In("values", s.LayerShape(s.Batch)...)}
			if q.Layer != "" {
				inputs = append(inputs, lower.In("images", s.ImageShape(s.Batch)...))
			}
			return inputs
		},
		Images:     images,
		Substitute: lower.Read("values"),
	})
	return Slope{p}, err
}

// Set sets the target of row i and the normalised image, on which values outside an inner layer depend.
func (s Slope) Set(i int, t Target, image []float32) {
	t.write(s.row(0, i))
	if len(s.inputs) > 2 {
		copy(s.row(2, i), image)
	}
}

// Value returns the input of row i's value of the layer.
func (s Slope) Value(i int) []float32 { return s.row(1, i) }

// Run differentiates at the values in the rows.
func (s Slope) Run(ctx context.Context) error { return s.run(ctx) }

// Gradient returns row i's derivative, of the layer's shape. The next run overwrites it.
func (s Slope) Gradient(i int) []float32 { return s.part(s.outputs[0], i) }
