package program

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// An Attention returns matrices [T, T] of attention for a batch of images, or what else its [lower.Glance]
// is.
type Attention struct {
	*Program
	relevance.Attention
	explains bool
	prefix   string // of the names of its outputs
	first    int    // the index of the first of them
}

// Attention returns the program that returns the attention of up to batch images at once, or derivatives of
// it by the rules of q. The error says why a model has no usable one.
func (n *Net) Attention(ctx context.Context, slot stages.Slot, what lower.Glance, q lower.Question,
	batch int) (Attention, error) {
	all, err := n.Attentions(ctx, slot, []lower.Glance{what}, q, batch)
	if err != nil {
		return Attention{}, err
	}
	return all[0], nil
}

// Attentions returns what each of different glances has of one program, which has one forward pass. Its bits
// don't depend on the other glances if all of them can share it, see [Net.OneGlance].
func (n *Net) Attentions(ctx context.Context, slot stages.Slot, glances []lower.Glance, q lower.Question,
	batch int) (all []Attention, err error) {
	defer onnx.Sound(&err)
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return nil, err
	}
	found, err := relevance.Attend(g)
	if err != nil {
		return nil, err
	}
	plain := allPlain(glances)
	to := backwards
	if plain {
		to = forwards
	}
	batch = n.atOnce(ctx, slot, to, batch, batch)
	if found.Merged {
		batch = 1
		if n.Batch > 1 {
			return nil, fmt.Errorf("the heads and images of attention %q share an axis, and the "+
				"model takes %d images at once: which of them changes faster can't be told; export the "+
				"model for one image, or for any number", found.Blocks[0], n.Batch)
		}
	}
	r := n.glances(glances, q)
	if n.Text != nil && slices.Contains(glances, lower.Slopes) {
		r.Layer = g.Root
		r.Substitute = lower.Read("values")
	}
	p, err := n.cached(ctx, slot, glancesKey(glances, q), batch, 4*n.size, r)
	if err != nil {
		return nil, err
	}
	for k, what := range glances {
		a := Attention{p, found, !plain, what.Prefix(k), 0}
		a.first = slices.IndexFunc(p.signature.Outputs,
			func(v lower.IO) bool { return strings.HasPrefix(v.Name, a.prefix) })
		all = append(all, a)
	}
	return all, nil
}

// allPlain reports whether all are attention itself.
func allPlain(glances []lower.Glance) bool {
	return !slices.ContainsFunc(glances, lower.Glance.Explains)
}

// glancesKey names a program of glances: equal names, equal programs of a net.
func glancesKey(glances []lower.Glance, q lower.Question) string {
	var names []string
	for _, what := range glances {
		names = append(names, string(what))
	}
	return fmt.Sprintf("attention %s, %s", strings.Join(names, " and "), asked(glances, q))
}

// asked returns the question of a program of glances: attention itself answers none.
func asked(glances []lower.Glance, q lower.Question) lower.Question {
	if allPlain(glances) {
		return lower.Question{}
	}
	return q
}

func (n *Net) glances(glances []lower.Glance, q lower.Question) lower.Request {
	return lower.Request{
		Kind:     lower.Attention,
		Question: asked(glances, q),
		Inputs: func(s lower.Shapes) []lower.IO {
			if allPlain(glances) {
				return lower.ImagesInput(s)
			}
			inputs := append(lower.ImagesInput(s), lower.In("targets", s.Batch, n.explained()))
			if n.Text != nil && slices.Contains(glances, lower.Slopes) {
				inputs = append(inputs, lower.In("values", s.LayerShape(s.Batch)...))
			}
			return inputs
		},
		Images:  lower.Images,
		Glances: glances,
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
	return a.named(a.prefix+"pixels", i), a.signature.Outputs[a.output(a.prefix+"pixels")].Shape[1:]
}

// Matrices returns a block's matrices for row i: one [T, T], or one a head. The next run overwrites them.
func (a Attention) Matrices(block, i int) []float32 { return a.part(a.outputs[a.first+block], i) }

// Aligned returns the derivative with respect to the last attention for row i, [Q, T], summed over its heads,
// and the queries [heads, Q, d] and keys [heads, d, T] of that. The next run overwrites them.
func (a Attention) Aligned(i int) (slope, queries, keys []float32) {
	return a.named(a.prefix+"block0", i), a.named(a.prefix+"queries", i), a.named(a.prefix+"keys", i)
}

// Heads returns the number of heads of Aligned's queries and keys.
func (a Attention) Heads() int { return a.signature.Outputs[a.output(a.prefix+"queries")].Shape[1] }
