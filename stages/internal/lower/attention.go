package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A Glance is the part of the attention of a transformer's blocks that a program returns.
type Glance string

const (
	// Heads is each block's attention, the mean over its heads.
	Heads Glance = "heads"
	// EachHead is each block's attention, of each head.
	EachHead Glance = "each head"
	// Slopes is the derivative of the explained number with respect to the last block's attention, of each
	// head.
	Slopes Glance = "slopes"
	// Weighted is each block's relevance times its derivative, where positive, the mean over its heads:
	// mean(max(∇A·R, 0)), R by [relevance.TIBAV].
	Weighted Glance = "weighted"
	// Driven is each block's attention times its derivative, where positive, the mean over its heads:
	// mean(max(∇A·A, 0)).
	Driven Glance = "driven"
	// Formation is each block's derivative of the score that the model's head gives to the block's own
	// tokens, where positive, the mean over heads and queries: [1, T], see formation.go.
	Formation Glance = "formation"
	// Aligned is the derivative with respect to the last attention, the sum over its heads, and the queries
	// and keys of each head.
	Aligned Glance = "aligned"
	// Relevances is each block's relevance alone, mean(max(R, 0)).
	Relevances Glance = "relevances"
	// LastRelevance is the relevance of the last block.
	LastRelevance Glance = "last relevance"
	// Pixels is the relevance of the image after all blocks, [C,H,W], or of a text's embedding.
	Pixels Glance = "pixels"
	// Factors is each block's R and ∇A separately, of each head, for tests.
	Factors Glance = "factors"
)

// needs returns which backward passes compute it.
func (what Glance) needs() (relevances, slopes bool) {
	switch what {
	case Slopes, Driven, Formation, Aligned:
		return false, true
	case Weighted, Factors:
		return true, true
	}
	return what.Explains(), false
}

// Explains reports whether it depends on the explained class. Attention itself doesn't.
func (what Glance) Explains() bool { return what != Heads && what != EachHead }

// findAttention finds the matrices of attention.
func (u *unit) findAttention() (err error) {
	u.attention, err = relevance.Attend(u.graph)
	poolless := func(what Glance) bool { return what != Formation && what != Aligned }
	if err == nil && u.attention.Pool != "" && slices.ContainsFunc(u.Glances, poolless) {
		return fmt.Errorf("the head pools the tokens by the attention %q of a query that is no token, for "+
			"which this method has no rule; use attribute/legrad or attribute/grad-eclip, or gradient, "+
			"relevance or class activation methods, instead", u.attention.Pool)
	}
	return err
}

// attend returns what each glance computes. As in [unit.backward], each sees only the model; what several of
// them compute alike, such as the derivative, ONNX Runtime computes once.
func (u *unit) attend() error {
	g := u.graph
	if err := u.explain(); err != nil {
		return err
	}
	u.forward = slices.Clip(g.Proto.Graph.Node)
	var emitted []*onnxpb.NodeProto
	for k, what := range u.Glances {
		g.Proto.Graph.Node = u.forward
		if err := u.glance(k, what); err != nil {
			return err
		}
		emitted = append(emitted, g.Proto.Graph.Node[len(u.forward):]...)
	}
	g.Proto.Graph.Node = append(u.forward, emitted...)
	u.show(len(u.forward))
	u.signature.Backward = backwardPasses(u.Glances)
	return nil
}

// Prefix returns what the names of the outputs of a program's glance k begin with.
func (what Glance) Prefix(k int) string {
	if k == 0 {
		return ""
	}
	return string(what) + " "
}

// backwardPasses returns the number of backward passes of a program with these glances: the relevance, the
// derivative, and that of grafted heads, each through itself.
func backwardPasses(glances []Glance) int {
	passes := map[string]bool{}
	for _, what := range glances {
		relevances, slopes := what.needs()
		passes["relevance"] = passes["relevance"] || relevances
		passes["derivative"] = passes["derivative"] || slopes && what != Formation
		passes["grafts"] = passes["grafts"] || what == Formation
	}
	n := 0
	for _, needed := range passes {
		if needed {
			n++
		}
	}
	return n
}

// glance k returns the attention of each block, or the values that the glance computes from it, its relevance
// and its derivative.
func (u *unit) glance(k int, what Glance) error {
	prefixed := what.Prefix(k)
	if what == Formation {
		return u.formation(prefixed)
	}
	g := u.graph
	needsRelevances, needsSlopes := what.needs()
	f := g.Fragment()
	var slope seed
	start := ""
	if needsSlopes {
		var err error
		if slope, err = u.seed(f, k, u.Question); err != nil {
			return err
		}
	}
	if needsRelevances {
		start = u.shaped(f, cmp.Or(u.counts, prefix+"targets"), g.Shape(u.Output))
	}
	g.After(f)

	at := u.attention.Blocks
	switch what {
	case Slopes, LastRelevance:
		at = at[len(at)-1:]
	case Aligned:
		at = []string{u.attention.Last()}
	case Pixels:
		at = []string{cmp.Or(g.Root, u.Input)}
	}
	var relevances, slopes map[string]string
	var err error
	if needsRelevances {
		// First, because rules that group nodes mustn't see the nodes of derivatives.
		seeds := map[string]string{u.Output: start}
		if relevances, err = u.without().Backward(g, seeds, at, relevance.TIBAV()); err != nil {
			return err
		}
	}
	if needsSlopes {
		seeds := map[string]string{slope.at: slope.cotangent}
		if slopes, err = u.without().Backward(g, seeds, at, u.Rules); err != nil {
			return err
		}
	}
	f = g.Fragment()
	if what == Aligned {
		if err := u.queryKey(f, prefixed, at[0]); err != nil {
			return err
		}
	}
	for k, v := range at {
		if needsRelevances && relevances[v] == "" || needsSlopes && slopes[v] == "" {
			return fmt.Errorf("nothing of the answer depends on %q", v)
		}
		name := fmt.Sprintf("block%d", k)
		if what == Pixels {
			name = "pixels"
		}
		u.glanceAt(f, what, prefixed+name, v, relevances[v], slopes[v])
	}
	g.After(f)
	return nil
}

// glanceAt returns the attention of a block, v, or what the glance computes from it, its relevance and its
// slope.
func (u *unit) glanceAt(f *onnx.Fragment, what Glance, name, v, relevance, slope string) {
	batch, t := u.batch, u.attention.Tokens
	heads := onnx.Size(u.graph.Shape(v)) / (batch * t * t)
	add := func(name, v string, shape ...int) { u.returned(f, name, v, shape...) }
	mean := func(v string) string { return overHeads(f, v, 1/float32(heads), batch, heads, t, t) }
	switch what {
	case Heads:
		add(name, mean(v), 1, t, t)
	case EachHead:
		add(name, v, heads, t, t)
	case Slopes:
		add(name, slope, heads, t, t)
	case Weighted:
		add(name, mean(f.Op("Relu", []string{f.Op("Mul", []string{slope, relevance})})), 1, t, t)
	case Aligned:
		queries := onnx.Size(u.graph.Shape(v)[len(u.graph.Shape(v))-2:]) / t
		heads := onnx.Size(u.graph.Shape(v)) / (batch * queries * t)
		add(name, overHeads(f, slope, 1, batch, heads, queries, t), queries, t)
	case Driven:
		add(name, mean(f.Op("Relu", []string{f.Op("Mul", []string{slope, v})})), 1, t, t)
	case Relevances, LastRelevance:
		add(name, mean(f.Op("Relu", []string{relevance})), 1, t, t)
	case Pixels:
		if u.Text != nil {
			add(name, relevance, u.graph.Shape(v)[1:]...)
			return
		}
		add(name, u.leave(f, relevance), u.Channels, u.Height, u.Width)
	case Factors:
		add(name+"_relevance", relevance, heads, t, t)
		add(name+"_slope", slope, heads, t, t)
	}
}

// returned adds v to the outputs, in a shape for each image.
func (u *unit) returned(f *onnx.Fragment, name, v string, shape ...int) {
	out := IO{name, append([]int{u.batch}, shape...)}
	f.OpTo(out.Value(), "Reshape",
		[]string{v, f.Ints("returned", int64s(out.Shape), int64(len(out.Shape)))})
	u.signature.Outputs = append(u.signature.Outputs, out)
}

// queryKey returns the queries [heads, Q, d] and the keys [heads, d, T] of an attention.
func (u *unit) queryKey(f *onnx.Fragment, prefixed, attention string) error {
	q, k, err := relevance.QueryKey(u.graph, attention)
	if err != nil {
		return err
	}
	shape := u.graph.Shape(attention) // of which what is constant may lack axes
	rank := len(shape)
	width := u.graph.Shape(k)
	d := width[len(width)-2]
	heads := onnx.Size(shape[:rank-2]) / u.batch
	for _, v := range []struct {
		name, of   string
		rows, cols int
	}{{"queries", q, shape[rank-2], d}, {"keys", k, d, shape[rank-1]}} {
		whole := append(slices.Clone(shape[:rank-2]), v.rows, v.cols)
		all := f.Op("Expand", []string{v.of, f.Ints("whole", int64s(whole), int64(rank))})
		u.returned(f, prefixed+v.name, all, heads, v.rows, v.cols)
	}
	return nil
}

// overHeads emits the sum over heads of matrices [n, t], times a weight, as a product, whose bits don't
// depend on the batch.
func overHeads(f *onnx.Fragment, v string, weight float32, batch, heads, n, t int) string {
	flat := f.Op("Reshape", []string{v, f.Ints("flat", []int64{int64(batch), int64(heads), int64(n * t)}, 3)})
	weights := f.Floats("mean", slices.Repeat([]float32{weight}, heads), 1, int64(heads))
	return f.Op("MatMul", []string{weights, flat})
}
