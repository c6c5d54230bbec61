package program

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A Glance is what a program returns of the attention of a transformer's blocks.
type Glance string

const (
	// Heads is each block's attention, the mean over its heads.
	Heads Glance = "heads"
	// Slopes is the derivative of the explained number with respect to the last block's
	// attention, of each head.
	Slopes Glance = "slopes"
	// Weighted is each block's relevance times its derivative, where positive, the mean
	// over its heads: mean(max(∇A·R, 0)), R by [relevance.TIBAV].
	Weighted Glance = "weighted"
	// Relevances is each block's relevance alone, mean(max(R, 0)).
	Relevances Glance = "relevances"
	// LastRelevance is that of the last block.
	LastRelevance Glance = "last relevance"
	// Pixels is the relevance that arrives at the image behind all blocks, [C,H,W].
	Pixels Glance = "pixels"
	// factors is each block's R and ∇A apart, of each head, for tests.
	factors Glance = "factors"
)

// asks tells what a program goes back from the answer for.
func (what Glance) asks() (relevances, slopes bool) {
	switch what {
	case Slopes:
		return false, true
	case Weighted, factors:
		return true, true
	}
	return what != Heads, false
}

// An Attention returns matrices [T, T] of attention for a batch of images, or what else
// there is to see at a [Glance].
type Attention struct {
	*Program
	relevance.Attention
	explains bool
}

// Attention returns the program that looks at the attention of up to batch images at
// once. The error says why a model has none that can be looked at.
func (n *Net) Attention(ctx context.Context, slot stages.Slot, what Glance, probability bool, batch int) (_ Attention, err error) {
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
	if what == Heads {
		to = forwards
	}
	batch = n.atOnce(ctx, slot, to, batch, batch)
	if found.Merged {
		batch = 1
		if n.Batch > 1 {
			return Attention{}, fmt.Errorf("the heads and images of attention %q share an axis, and the model takes %d images at once: which of them changes faster can't be told; export the model for one image, or for any number", found.Blocks[0], n.Batch)
		}
	}
	a := Attention{Attention: found, explains: what != Heads}
	key := fmt.Sprintf("attention %s, probability %t", what, probability)
	a.Program, err = n.keep(slot, key, batch, 4*n.size, func() (*onnx.Model, recipe, error) {
		g, err := n.Graph(ctx, slot, batch)
		if err != nil {
			return nil, recipe{}, err
		}
		r, err := n.compileAttention(g, what, probability, batch)
		return g.Model, r, err
	})
	return a, err
}

func (n *Net) compileAttention(g *onnx.Graph, what Glance, probability bool, batch int) (r recipe, err error) {
	defer onnx.Sound(&err)
	r = recipe{canonical: true, feeds: []feed{{"images", []int{batch, n.Channels, n.Height, n.Width}}}}
	found, err := relevance.Attend(g)
	if err != nil {
		return r, err
	}
	if what != Heads {
		r.feeds = append(r.feeds, feed{"targets", []int{batch, n.Classes}})
	}
	merge(g, "")
	inputs, err := declare(g, r.feeds)
	if err != nil {
		return r, err
	}
	before := g.Fragment()
	n.enter(before, "runexp_images", g.Types[n.Input].Elem)
	g.Before(before)
	after := g.Fragment()
	after.OpTo(answer, "Reshape", []string{n.Output, after.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)})
	asksRelevances, asksSlopes := what.asks()
	slope, start := "", ""
	if asksSlopes {
		slope = n.seed(after, g, "runexp_targets", batch, probability)
	}
	if asksRelevances {
		start = formed(after, g, "runexp_targets", g.Shape(n.Output))
	}
	g.After(after)

	at := found.Blocks
	switch what {
	case Slopes, LastRelevance:
		at = at[len(at)-1:]
	case Pixels:
		at = []string{n.Input}
	}
	var relevances, slopes map[string]string
	if asksRelevances {
		// First, because rules that group nodes mustn't see those of derivatives.
		if relevances, err = relevance.Backward(g, map[string]string{n.Output: start}, at, relevance.TIBAV()); err != nil {
			return r, err
		}
	}
	if asksSlopes {
		if slopes, err = relevance.Backward(g, map[string]string{n.Output: slope}, at, relevance.Derivative()); err != nil {
			return r, err
		}
	}
	end := g.Fragment()
	give := func(name, v string, shape ...int) {
		long := []int64{int64(batch)}
		for _, d := range shape {
			long = append(long, int64(d))
		}
		r.returns = append(r.returns, feed{name, append([]int{batch}, shape...)})
		end.OpTo("runexp_"+name, "Reshape", []string{v, end.Ints("returned", long, int64(len(long)))})
	}
	t := found.Tokens
	for k, v := range at {
		if asksRelevances && relevances[v] == "" || asksSlopes && slopes[v] == "" {
			return r, fmt.Errorf("nothing of the answer depends on %q", v)
		}
		heads := size(g.Shape(v)) / (batch * t * t)
		name := fmt.Sprintf("block%d", k)
		switch what {
		case Heads:
			give(name, mean(end, v, batch, heads, t), 1, t, t)
		case Slopes:
			give(name, slopes[v], heads, t, t)
		case Weighted:
			product := end.Op("Relu", []string{end.Op("Mul", []string{slopes[v], relevances[v]})})
			give(name, mean(end, product, batch, heads, t), 1, t, t)
		case Relevances, LastRelevance:
			give(name, mean(end, end.Op("Relu", []string{relevances[v]}), batch, heads, t), 1, t, t)
		case Pixels:
			give("pixels", n.leave(end, relevances[v]), n.Channels, n.Height, n.Width)
		case factors:
			give(name+"_relevance", relevances[v], heads, t, t)
			give(name+"_slope", slopes[v], heads, t, t)
		}
	}
	g.After(end)
	steady(g, batch)
	seal(g, inputs, r)
	return r, nil
}

// mean emits the mean over heads, as a product, whose bits don't depend on the batch.
func mean(f *onnx.Fragment, v string, batch, heads, t int) string {
	flat := f.Op("Reshape", []string{v, f.Ints("flat", []int64{int64(batch), int64(heads), int64(t * t)}, 3)})
	weights := make([]float32, heads)
	for i := range weights {
		weights[i] = 1 / float32(heads)
	}
	return f.Op("MatMul", []string{f.Floats("mean", weights, 1, int64(heads)), flat})
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Explain says what is explained of row i, for what isn't the same for all classes.
func (a Attention) Explain(i int, t Target) {
	if a.explains {
		t.weigh(a.row(1, i))
	}
}

// Image returns where row i's normalised image goes.
func (a Attention) Image(i int) []float32 { return a.row(0, i) }

// Run looks at what stands in the rows.
func (a Attention) Run(ctx context.Context) error { return a.run(ctx) }

// Pixels returns the relevance of the pixels of row i, [C,H,W]. It is overwritten by the
// next run.
func (a Attention) Pixels(i int) []float32 { return a.part(a.returned[0], i) }

// Matrices returns what there is of a block for row i: a matrix [T, T], or one a head.
// They are overwritten by the next run.
func (a Attention) Matrices(block, i int) []float32 { return a.part(a.returned[block], i) }
