package relevance

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// An Attention describes the self-attention of a transformer, for methods that use it. T is the number of
// tokens.
type Attention struct {
	// Blocks are the attention matrices, the Softmax outputs of the blocks, the first one first: [B, heads,
	// T, T], where row i of the last two axes has the weights of token i.
	Blocks []Value
	Tokens int
	// Merged means that heads and images share an axis, [B·heads, T, T]. Which of the two is the inner one is
	// unknown, so such a model is run on one image at a time.
	Merged bool
	// Read are the tokens from which the classes are computed after the last block: a class token, or all
	// tokens if they are averaged.
	Read []int
	// The patches are Height × Width tokens in row-major order, starting at token First.
	First, Height, Width int
	// Pool is the attention, [B, heads, 1, T], by which a single query pools the tokens after the last block,
	// as in SigLIP; "" if the head has none.
	Pool Value
}

// Attend finds the attention of a vision transformer by its structure, independent of names: a Softmax along
// the last axis of [.., T, T] that is multiplied with values, where T is the number of patches of the image
// and a few more. The error is the reason why a model has no such attention, or also other attention.
func Attend(g *onnx.Graph) (Attention, error) {
	p := newPath(g)
	batch := g.Shape(g.Inputs()[0].Name)[0]
	var a Attention
	last := -1
	for i, n := range p.nodes {
		shape := g.Shape(n.Output[0])
		rank := len(shape)
		if n.OpType != "Softmax" || rank < 3 {
			continue
		}
		fail := func(why string) (Attention, error) {
			return a, fmt.Errorf("the attention %q has shape %v for %d images: %s; use gradient, relevance "+
				"or class activation methods instead", n.Output[0], shape, batch, why)
		}
		t := shape[rank-1]
		if p.pools(i, a, batch) {
			a.Pool = n.Output[0]
			continue
		}
		switch {
		case !alongLast(n, rank) || t != shape[rank-2]:
			return fail("it isn't a matrix of all tokens by all tokens")
		case a.Pool != "":
			return fail(fmt.Sprintf("it follows the attention %q of a single query", a.Pool))
		case !p.multiplied(i):
			return fail("its rows aren't the weights of values")
		case rank == 4 && shape[0] == batch:
		case rank == 3 && shape[0]%batch == 0:
			a.Merged = a.Merged || shape[0] != batch
		default:
			return fail(fmt.Sprintf("it is limited to windows of %d tokens, so that no row covers the "+
				"image and there is no class token", t))
		}
		if a.Blocks == nil {
			var ok bool
			if a.First, a.Height, a.Width, ok = p.grid(t, i); !ok {
				return fail(p.noGrid(t))
			}
			a.Tokens = t
		}
		if t != a.Tokens {
			return fail(fmt.Sprintf("earlier blocks have %d tokens", a.Tokens))
		}
		a.Blocks = append(a.Blocks, n.Output[0])
		last = i
	}
	if last < 0 {
		return a, fmt.Errorf("the model has no attention of tokens to tokens, which this method needs; use " +
			"gradient, relevance or class activation methods instead")
	}
	a.Read = p.read(last, a.Tokens, batch)
	return a, nil
}

// alongLast reports whether a Softmax is over the last axis.
func alongLast(n onnx.Node, rank int) bool {
	axis := n.Int("axis", -1)
	return axis == -1 || axis == rank-1
}

// pools reports whether node i, a Softmax, is the attention of a single query to all tokens.
func (p *path) pools(i int, a Attention, batch int) bool {
	n := p.nodes[i]
	shape := p.g.Shape(n.Output[0])
	rank := len(shape)
	return a.Tokens > 1 && a.Pool == "" && alongLast(n, rank) && shape[rank-1] == a.Tokens &&
		shape[rank-2] == 1 && shape[0]%batch == 0 && p.multiplied(i)
}

// noGrid says why so many tokens have no places in the image.
func (p *path) noGrid(tokens int) string {
	if stated := p.g.Tokens; !stated.IsZero() {
		return fmt.Sprintf("the tokens %v that are stated for the model are %d, and its rows %d", stated,
			stated.Count(), tokens)
	}
	return fmt.Sprintf("no layer before it has about %d positions, so its rows aren't tokens of the image "+
		"but channels or windows, unless model/onnx states them by tokens, such as tokens: %v", tokens,
		Suggested(p.g, tokens))
}

// multiplied reports whether the output of node i is a factor of a product whose other factor isn't a
// constant.
func (p *path) multiplied(i int) bool {
	known, ok := p.factors[i]
	if !ok {
		known = p.factor(i)
		p.factors[i] = known
	}
	return known
}

func (p *path) factor(i int) bool {
	for _, k := range p.reads[p.nodes[i].Output[0]] {
		n := p.nodes[k]
		op := p.ops[n.OpType]
		if op == nil {
			return false
		}
		if op.Kind == Bilinear && p.branches(n) == 2 {
			return true
		}
		if op.Kind == Move && p.multiplied(k) {
			return true
		}
	}
	return false
}

// grid returns the positions of the patches among t tokens: those of the last layer before node i with t
// places or a few less, or of a square if no layer has places. The tokens of a text are a row.
func (p *path) grid(t, i int) (first, height, width int, ok bool) {
	if p.g.Root != "" {
		return 0, 1, t, t == words(p.g)
	}
	if stated := p.g.Tokens; !stated.IsZero() {
		return stated.Prefix, stated.Height, stated.Width, stated.Count() == t
	}
	for _, n := range slices.Backward(p.nodes[:i]) {
		shape := p.g.Shape(n.Output[0])
		if n.OpType != "Conv" && n.OpType != "MaxPool" && n.OpType != "AveragePool" || len(shape) != 4 {
			continue
		}
		ok = true
		if rest := t - shape[2]*shape[3]; rest >= 0 && rest <= MaxOtherTokens && shape[2]*shape[3] > 1 {
			return rest, shape[2], shape[3], true
		}
	}
	side, others := TokenGrid(t)
	return others, side, side, !ok && SureGrid(p.g, t)
}

// words returns the number of a text's tokens.
func words(g *onnx.Graph) int {
	shape := g.Shape(g.Inputs()[0].Name)
	return shape[len(shape)-1]
}

// read returns the tokens selected after node i, or all tokens if none are.
func (p *path) read(i, tokens, batch int) []int {
	picked := map[int]bool{}
	for _, n := range p.nodes[i+1:] {
		in := p.g.Shape(n.Input[0])
		axis := slices.Index(in, tokens)
		if len(in) != 3 || axis < 0 || axis > 1 || in[1-axis] != batch {
			continue
		}
		for _, k := range p.indices(n, axis) {
			picked[(k+tokens)%tokens] = true
		}
	}
	var out []int
	for k := range tokens {
		if picked[k] || len(picked) == 0 {
			out = append(out, k)
		}
	}
	return out
}

// indices returns the indices that a node selects along an axis of its input, nil if it selects none or all.
func (p *path) indices(n onnx.Node, axis int) []int {
	defer n.Named()
	in := p.g.Shape(n.Input[0])
	along := func(at int) bool { return at == axis || at == axis-len(in) }
	var out []int
	switch n.OpType {
	case "Gather":
		if long, ok := p.g.Int64s(n.In(1)); ok && along(n.Int("axis", 0)) {
			for _, k := range long {
				out = append(out, int(k))
			}
		}
	case "Slice":
		out = p.sliced(n, along, in[axis])
	case "Split":
		if !along(n.Int("axis", 0)) {
			return nil
		}
		from := 0
		for _, v := range n.Output {
			size := p.g.Shape(v)[axis]
			for j := from; j < from+size && p.on[v]; j++ {
				out = append(out, j)
			}
			from += size
		}
	}
	if len(out) == in[axis] {
		return nil
	}
	return out
}

// sliced returns the indices that a Slice selects along an axis with so many.
func (p *path) sliced(n onnx.Node, along func(axis int) bool, size int) (out []int) {
	starts, ok1 := p.g.Int64s(n.In(1))
	ends, ok2 := p.g.Int64s(n.In(2))
	axes, ok3 := p.g.Int64s(n.In(3))
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	for k, at := range axes {
		if !along(int(at)) {
			continue
		}
		for j := clampIndex(starts[k], size); j < clampIndex(ends[k], size); j++ {
			out = append(out, j)
		}
	}
	return out
}

// clampIndex converts a bound of a Slice, which may be negative or out of range, to an index.
func clampIndex(at int64, size int) int {
	if at < 0 {
		at += int64(size)
	}
	return int(min(max(at, 0), int64(size)))
}

// Last returns the attention from whose rows the classes are computed: that of the head, if it pools by one,
// or of the last block.
func (a Attention) Last() Value {
	if a.Pool != "" {
		return a.Pool
	}
	return a.Blocks[len(a.Blocks)-1]
}

// Asking returns the rows of Last that the classes are computed from.
func (a Attention) Asking() []int {
	if a.Pool != "" {
		return []int{0}
	}
	return a.Read
}

// QueryKey returns the two factors whose product, scaled and masked, an attention is the softmax of: queries
// [.., Q, d] and keys [.., d, T].
func QueryKey(g *onnx.Graph, attention Value) (query, key Value, err error) {
	if n := g.Producer(attention); n != nil {
		if m := scoresOf(g, onnx.Node{NodeProto: n}.In(0), 8); m != nil {
			return m.Input[0], m.Input[1], nil
		}
	}
	return "", "", fmt.Errorf("the attention %q isn't the softmax of a product of queries and keys, which "+
		"are needed", attention)
}

// scoresOf returns the MatMul that v is computed from by at most so many scales and masks, nil if there is
// none or more than one.
func scoresOf(g *onnx.Graph, v Value, steps int) *onnxNode {
	n := g.Producer(v)
	if n == nil || steps == 0 {
		return nil
	}
	var found *onnxNode
	switch n.OpType {
	case "MatMul":
		return n
	case "Add", "Sub", "Mul", "Div", "Where", "Identity", "Cast":
		for _, x := range n.Input {
			if m := scoresOf(g, x, steps-1); m != nil && found != nil {
				return nil
			} else if m != nil {
				found = m
			}
		}
	}
	return found
}
