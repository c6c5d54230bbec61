package program

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// An Attention returns matrices [T, T] of attention for a batch of images, or what else its [Glance] is.
type Attention struct {
	*Program
	relevance.Attention
	explains bool
}

// Attention returns the program that returns the attention of up to batch images at once. The error says why
// a model has no usable one.
func (n *Net) Attention(ctx context.Context, slot stages.Slot, what lower.Glance, probability bool,
	batch int) (_ Attention, err error) {
	defer onnx.Sound(&err)
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return Attention{}, err
	}
	found, err := relevance.Attend(g)
	if err != nil {
		return Attention{}, err
	}
	to := backwards
	if what.Plain() {
		to = forwards
	}
	batch = n.atOnce(ctx, slot, to, batch, batch)
	if found.Merged {
		batch = 1
		if n.Batch > 1 {
			return Attention{}, fmt.Errorf("the heads and images of attention %q share an axis, and the "+
				"model takes %d images at once: which of them changes faster can't be told; export the "+
				"model for one image, or for any number", found.Blocks[0], n.Batch)
		}
	}
	a := Attention{Attention: found, explains: !what.Plain()}
	r := n.glance(what, probability)
	if n.Text != nil && what == lower.Slopes {
		r.Layer = g.Root
		r.Substitute = lower.Read("values")
	}
	a.Program, err = n.cached(ctx, slot, fmt.Sprintf("attention %s, probability %t", what, probability),
		batch, 4*n.size, r)
	return a, err
}

func (n *Net) glance(what lower.Glance, probability bool) lower.Request {
	return lower.Request{
		Kind:     lower.Attention,
		Question: lower.Question{Probability: probability},
		Inputs: func(s lower.Shapes) []lower.IO {
			if what.Plain() {
				return lower.ImagesInput(s)
			}
			inputs := append(lower.ImagesInput(s), lower.In("targets", s.Batch, n.explained()))
			if n.Text != nil && what == lower.Slopes {
				inputs = append(inputs, lower.In("values", s.LayerShape(s.Batch)...))
			}
			return inputs
		},
		Images: lower.Images,
		Glance: what,
	}
}

// Explain sets the target of row i, on which all but plain attention depends.
func (a Attention) Explain(i int, t Target) {
	if a.explains {
		t.write(a.row(1, i))
	}
}

// Image returns the input of row i's normalised image.
func (a Attention) Image(i int) []float32 { return a.row(0, i) }

// Embedding returns the input of row i's embedding, in whose place it is, for slopes at a text.
func (a Attention) Embedding(i int) []float32 { return a.row(2, i) }

// Run runs the program on the images in the rows.
func (a Attention) Run(ctx context.Context) error { return a.run(ctx) }

// Pixels returns the relevance of the pixels of row i, [C,H,W], or of its embedding, and the shape. The next
// run overwrites it.
func (a Attention) Pixels(i int) ([]float32, []int) {
	return a.part(a.outputs[0], i), a.signature.Outputs[a.output("pixels")].Shape[1:]
}

// Matrices returns a block's matrices for row i: one [T, T], or one a head. The next run overwrites them.
func (a Attention) Matrices(block, i int) []float32 { return a.part(a.outputs[block], i) }

// Aligned returns the derivative with respect to the last attention for row i, [Q, T], summed over its heads,
// and the queries [heads, Q, d] and keys [heads, d, T] of that. The next run overwrites them.
func (a Attention) Aligned(i int) (slope, queries, keys []float32) {
	return a.named("block0", i), a.named("queries", i), a.named("keys", i)
}

// Heads returns the number of heads of Aligned's queries and keys.
func (a Attention) Heads() int { return a.signature.Outputs[a.output("queries")].Shape[1] }
