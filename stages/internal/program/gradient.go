package program

import (
	"context"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Gradient returns the derivative of the explained number for a batch of
// images, together with the value it was taken at; of several questions, if it is
// to answer several, with one way forward.
type Gradient struct{ *Program }

// Gradient returns the program that answers q, and other questions, for up to batch
// images at once; its Batch may be smaller, see [Net.AtOnce]. Its bits don't depend on
// the other questions if all of them may be asked together, see [Net.Together].
func (n *Net) Gradient(ctx context.Context, slot stages.Slot, q Question, batch int, also ...Question) (Gradient, error) {
	p, err := n.keepWalk(ctx, slot, n.AtOnce(ctx, slot, batch), n.gradient(q, also...))
	return Gradient{p}, err
}

func (n *Net) gradient(q Question, also ...Question) walk {
	return walk{
		Question: q,
		also:     also,
		name:     "gradient",
		feeds: func(b bounds) []feed {
			feeds := []feed{{"targets", []int{b.batch, n.Classes}}, {"images", b.images(b.batch)}}
			for _, q := range append([]Question{q}, also...) {
				if !slices.ContainsFunc(feeds, func(f feed) bool { return f.name == q.counted() }) {
					feeds = append(feeds, feed{q.counted(), feeds[0].shape})
				}
			}
			return feeds
		},
		images: func(*onnx.Fragment) string { return "runexp_images" },
	}
}

// Explain says what is explained of row i.
func (g Gradient) Explain(i int, t Target) { t.weigh(g.row(0, i)) }

// Counts returns where it goes how much each class counts for row i, for questions with
// counts of that name.
func (g Gradient) Counts(name string, i int) []float32 {
	return g.row(slices.Index(g.fed, Question{Counts: name}.counted()), i)
}

// Image returns where row i's normalised image goes.
func (g Gradient) Image(i int) []float32 { return g.row(1, i) }

// Run differentiates what stands in the rows.
func (g Gradient) Run(ctx context.Context) error { return g.run(ctx) }

// Gradient returns row i's derivative, of the layer's shape. It is overwritten by
// the next run.
func (g Gradient) Gradient(i int) []float32 { return g.part(g.returned[0], i) }

// Value returns the layer's value for row i.
func (g Gradient) Value(i int) []float32 { return g.part(g.returned[1], i) }

// An Arrival is what a question has for an answer about one image. The next run
// overwrites it.
type Arrival struct {
	Gradient, Value []float32 // at the layer
	Shape           []int     // of both
	Began           []float32 // what the walk began with, a number a class; nil for the derivative
}

// Arrival returns what the k-th question has for row i: the first is number 0, and the
// others follow.
func (g Gradient) Arrival(k, i int) Arrival {
	number := ""
	if k > 0 {
		number = strconv.Itoa(k + 1)
	}
	shape := g.shapes[slices.Index(g.names, "derivative"+number)][1:]
	return Arrival{g.named("derivative"+number, i), g.named("value"+number, i), slices.Clone(shape), g.named("began"+number, i)}
}

// A Slope returns the derivative of the explained number at values that are put
// in the place of a layer's own.
type Slope struct{ *Program }

// Slope returns the program that answers q for up to batch values at once, or for
// fewer as [Net.AtOnce] says.
func (n *Net) Slope(ctx context.Context, slot stages.Slot, q Question, batch int) (Slope, error) {
	p, err := n.keepWalk(ctx, slot, n.AtOnce(ctx, slot, batch), walk{
		Question: q,
		name:     "slope",
		feeds: func(b bounds) []feed {
			f := []feed{{"targets", []int{b.batch, n.Classes}}, {"values", b.layer(b.batch)}}
			if q.Layer != "" {
				f = append(f, feed{"images", b.images(b.batch)})
			}
			return f
		},
		images: func(*onnx.Fragment) string {
			if q.Layer != "" {
				return "runexp_images"
			}
			return "runexp_values"
		},
		layer: func(*onnx.Fragment) string { return "runexp_values" },
	})
	return Slope{p}, err
}

// Set says what is explained of row i, and of which normalised image: what goes
// around an inner layer depends on it.
func (s Slope) Set(i int, t Target, image []float32) {
	t.weigh(s.row(0, i))
	if len(s.feeds) > 2 {
		copy(s.row(2, i), image)
	}
}

// Value returns where row i's value of the layer goes.
func (s Slope) Value(i int) []float32 { return s.row(1, i) }

// Run differentiates at what stands in the rows.
func (s Slope) Run(ctx context.Context) error { return s.run(ctx) }

// Gradient returns row i's derivative, of the layer's shape. It is overwritten by
// the next run.
func (s Slope) Gradient(i int) []float32 { return s.part(s.returned[0], i) }
