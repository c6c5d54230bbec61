package relevance

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Head is what follows the blocks of a transformer, for methods that run it on the tokens of any block.
type Head struct {
	// Ends are the values at which the blocks end, the first block first: tokens, all of one shape.
	Ends []Value
	// Axis is the axis of the tokens in Ends, if the head treats all tokens alike until it selects one or
	// pools them. It is -1 if it pools by an attention.
	Axis int
	// Nodes compute the model's output from the last of Ends.
	Nodes []onnx.Node
}

// FindHead finds where the blocks of a transformer end, and its head. A block ends at the last value before
// the next block's attention that all paths from input to output pass through: the sum of its residual
// connection, or the normalisation of that in post-norm models. The last block ends where the one before it
// does. The error says why a model has no such values, or a head that isn't certain.
func FindHead(g *onnx.Graph, a Attention) (Head, error) {
	p := newPath(g)
	var h Head
	var before []int // the token values of the block before
	for k, v := range a.Blocks {
		from, to := p.producers[v], len(p.nodes)
		if k+1 < len(a.Blocks) {
			to = p.producers[a.Blocks[k+1]]
		}
		cuts := p.tokenCuts(from, to, a)
		if k+1 == len(a.Blocks) {
			cuts = p.endOfLast(cuts, before)
		}
		if len(cuts) == 0 {
			return h, fmt.Errorf("the end of the block of attention %q isn't certain: no value of %d tokens "+
				"after it is on all paths to the answer%s", v, a.Tokens, likeBefore(k))
		}
		end := p.nodes[cuts[len(cuts)-1]].Output[0]
		h.Ends, before = append(h.Ends, end), cuts
		if want, got := g.Shape(h.Ends[0]), g.Shape(end); !slices.Equal(want, got) {
			return h, fmt.Errorf("blocks end at values of different shapes, %v and %v", want, got)
		}
	}
	last := h.Ends[len(h.Ends)-1]
	h.Nodes = p.nodes[p.producers[last]+1:]
	if a.Pool != "" {
		h.Axis = -1
		return h, nil
	}
	return h, h.findAxis(p, a)
}

// likeBefore says what the last block must have in addition to block 0.
func likeBefore(k int) string {
	if k == 0 {
		return ""
	}
	return ", as in the blocks before"
}

// tokenCuts returns the nodes between two that make a cut of all tokens.
func (p *path) tokenCuts(from, to int, a Attention) (out []int) {
	for i := from + 1; i < to; i++ {
		v, ok := p.cut(i)
		if s := p.g.Shape(v); ok && len(s) == 3 && (s[0] == a.Tokens || s[1] == a.Tokens) {
			out = append(out, i)
		}
	}
	return out
}

// endOfLast returns the cuts of the last block, given those that follow its attention, up to its end: the
// same operators as in the block before. A single block ends at its last sum of two branches, or at the
// normalisation of that if it has another one inside.
func (p *path) endOfLast(cuts, before []int) []int {
	if before == nil {
		return p.endOfSingle(cuts)
	}
	if len(cuts) < len(before) {
		return nil
	}
	cuts = cuts[:len(before)]
	for k, i := range before {
		if p.nodes[i].OpType != p.nodes[cuts[k]].OpType {
			return nil
		}
	}
	return cuts
}

func (p *path) endOfSingle(cuts []int) []int {
	sum := func(i int) bool { return p.nodes[i].OpType == "Add" && p.branches(p.nodes[i]) == 2 }
	last := len(cuts) - 1
	for last >= 0 && !sum(cuts[last]) {
		last--
	}
	norm := func(i int) bool { return p.nodes[i].OpType == "LayerNormalization" }
	if slices.ContainsFunc(cuts[:last+1], norm) && last+1 < len(cuts) && norm(cuts[last+1]) {
		last++
	}
	return cuts[:last+1]
}

// findAxis sets the axis of the tokens, the one along which the head selects or pools them. Batch and tokens
// may be equally many, so each axis of the right size is tried.
func (h *Head) findAxis(p *path, a Attention) error {
	shape := p.g.Shape(h.Ends[0])
	err := fmt.Errorf("no axis of %v has %d tokens", shape, a.Tokens)
	for _, axis := range []int{1, 0} {
		if shape[axis] != a.Tokens {
			continue
		}
		if err = h.alike(p, axis); err == nil {
			h.Axis = axis
			return nil
		}
	}
	return fmt.Errorf("the head isn't certain: %w", err)
}

// alike returns an error unless the head treats all tokens alike, which are on an axis, until it selects one
// or pools them.
func (h *Head) alike(p *path, axis int) error {
	at := map[Value]int{h.Ends[len(h.Ends)-1]: axis} // the axis of the tokens, by value that has several
	for _, n := range h.Nodes {
		to, ok := p.tokensAfter(n, at)
		if !ok {
			return fmt.Errorf("%s mixes tokens, or tells them apart, before they are selected or pooled",
				n.Label())
		}
		for _, v := range n.Output {
			if to >= 0 && p.g.Shape(v)[to] > 1 {
				at[v] = to
			}
		}
	}
	for v := range p.results {
		if _, ok := at[v]; ok {
			return fmt.Errorf("the output has an answer for each token")
		}
	}
	return nil
}

// tokensAfter returns the axis of the tokens in the output of a node, -1 if it has none, given those in
// values before it; false if the node doesn't treat tokens alike.
func (p *path) tokensAfter(n onnx.Node, at map[Value]int) (axis int, ok bool) {
	axis = -1
	for _, v := range n.Input {
		if k, has := at[v]; has {
			if axis >= 0 && axis != k {
				return 0, false
			}
			axis = k
		}
	}
	if axis < 0 {
		return -1, true
	}
	in := p.g.Shape(n.In(0))
	switch n.OpType {
	case "Transpose":
		perm := n.Ints("perm")
		return slices.Index(perm, axis), len(perm) == len(in)
	case "MatMul", "Gemm":
		_, first := at[n.In(0)]
		return axis, first && p.g.Weight(n.In(1)) != nil && n.Int("transA", 0) == 0 && axis != len(in)-1
	case "LayerNormalization":
		first := n.Int("axis", -1)
		if first < 0 {
			first += len(in)
		}
		return axis, axis < first
	case "BatchNormalization":
		return axis, axis != 1
	case "Gather":
		return p.gathered(n, axis, len(in))
	case "Slice", "Split":
		return axis, true
	case "GlobalAveragePool", "GlobalMaxPool":
		return -1, axis >= 2
	case "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp":
		return p.reduced(n, axis, len(in))
	}
	return axis, p.elementwise(n, axis, at)
}

// gathered returns the axis of the tokens after a Gather of constant places.
func (p *path) gathered(n onnx.Node, axis, rank int) (int, bool) {
	along := n.Int("axis", 0)
	if along < 0 {
		along += rank
	}
	switch dropped := len(p.g.Shape(n.Output[0])) < rank; {
	case p.g.Weight(n.In(1)) == nil || len(p.g.Shape(n.In(1))) > 1:
		return 0, false
	case dropped && along == axis:
		return -1, true
	case dropped && along < axis:
		return axis - 1, true
	}
	return axis, true
}

// reduced returns the axis of the tokens after axes are reduced.
func (p *path) reduced(n onnx.Node, axis, rank int) (int, bool) {
	axes := n.Ints("axes")
	if n.In(1) != "" {
		long, ok := p.g.Int64s(n.In(1))
		if !ok {
			return 0, false
		}
		for _, k := range long {
			axes = append(axes, int(k))
		}
	}
	if len(axes) == 0 {
		return -1, n.Int("noop_with_empty_axes", 0) == 0
	}
	before := 0
	for _, k := range axes {
		if k = (k + rank) % rank; k == axis {
			return -1, true
		} else if k < axis && n.Int("keepdims", 1) == 0 {
			before++
		}
	}
	return axis - before, true
}

// elementwise reports whether a node computes each number of its output from one of each input, in the same
// way for all tokens.
func (p *path) elementwise(n onnx.Node, axis int, at map[Value]int) bool {
	switch op := p.ops[n.OpType]; {
	case op == nil:
		return false
	case op.Kind == Activation:
	default:
		switch n.OpType {
		case "Add", "Sub", "Mul", "Div", "Pow", "Sum", "Neg", "Clip", "Identity", "Cast", "Dropout":
		default:
			return false
		}
	}
	rank := len(p.g.Shape(n.Output[0]))
	for _, v := range n.Input {
		shape := p.g.Shape(v)
		k := axis - rank + len(shape)
		if _, tokens := at[v]; v != "" && k >= 0 && shape[k] > 1 && !(tokens && len(shape) == rank) {
			return false
		}
	}
	return true
}
