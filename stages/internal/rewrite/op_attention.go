package rewrite

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// unseen is added to scores that don't count: their exponential vanishes, and it stays a finite number in
// further computations.
const unseen = -1e30

// Attention was introduced in opset 23 (Vaswani et al. 2017, equation 1): softmax(cap(s·Q·Kᵀ) + mask)·V for
// every head, with cap(x) = c·tanh(x/c) if there is a softcap c. Several heads of queries may share one
// head of keys and values; their queries are then concatenated in one product. A fully masked row is zeros.
// From 24 on it may read how many keys there are, and from 25 on queries may see a window of keys.
var attention = []converter{{"Attention", 23, Newest, func(e *edit, n onnx.Node) error {
	if n.In(4) != "" || n.In(5) != "" || !singleOutput(n) {
		return fmt.Errorf("it reads keys and values of an earlier run, or hands more on than its result")
	}
	if n.In(6) != "" || n.Int("left_window_size", -1) != -1 || n.Int("right_window_size", -1) != -1 {
		return fmt.Errorf("its keys are limited by a window or by their number")
	}
	parts, err := e.parts(n)
	if err != nil {
		return err
	}
	keys := n.Int("kv_num_heads", 0)
	a, err := e.heads(n.Output[0], parts, [3]int{n.Int("q_num_heads", 0), keys, keys})
	if err != nil {
		return err
	}
	a.mask, a.causal = n.In(3), n.Int("is_causal", 0) != 0
	a.scale, a.cap = n.Float("scale", 0), n.Float("softcap", 0)
	return e.attend(n.Output[0], a)
}}}

// attend writes attention whose output is called hint.
func (e *edit) attend(hint string, a heads) error {
	scale := float64(a.scale)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(a.width))
	}
	q := e.op(hint, "Mul", []string{a.q, e.scalar(hint+"/scale", float32(scale))})
	shared := a.heads / a.keyHeads
	if shared > 1 {
		q = e.reshape(hint, q, a.batch, a.keyHeads, shared*a.queries, a.width)
	}
	scores := e.op(hint, "MatMul", []string{q, e.transpose(hint, a.k, 0, 1, 3, 2)})
	if shared > 1 {
		scores = e.reshape(hint, scores, a.batch, a.heads, a.queries, a.keys)
	}
	if a.cap != 0 {
		cap := e.scalar(hint+"/softcap", a.cap)
		scores = e.op(hint, "Mul",
			[]string{e.op(hint, "Tanh", []string{e.op(hint, "Div", []string{scores, cap})}), cap})
	}
	scores, left, err := e.masked(hint, a, scores)
	if err != nil {
		return err
	}
	p := e.op(hint, "Softmax", []string{scores}, onnx.Attr{Name: "axis", Value: -1})
	if left != "" {
		p = e.op(hint, "Mul", []string{p, left})
	}
	if shared > 1 {
		p = e.reshape(hint, p, a.batch, a.keyHeads, shared*a.queries, a.keys)
	}
	y := e.op(hint, "MatMul", []string{p, a.v})
	if !a.merged {
		e.reshapeTo(hint, y, a.batch, a.heads, a.queries, a.values)
		return nil
	}
	if shared > 1 {
		y = e.reshape(hint, y, a.batch, a.heads, a.queries, a.values)
	}
	e.reshapeTo(hint, e.transpose(hint, y, 0, 2, 1, 3), a.batch, a.queries, a.heads*a.values)
	return nil
}

// heads are the queries, keys and values of an Attention, of the shapes [batch, heads, queries, width],
// [batch, keyHeads, keys, width] and [batch, keyHeads, keys, values].
type heads struct {
	q, k, v         string
	merged          bool // the heads are concatenated in a token's elements
	batch           int
	heads, keyHeads int
	queries, keys   int
	width, values   int
	mask            string  // "", or added to the scores, or true for those that count
	causal          bool    // queries see no later keys
	scale, cap      float32 // 0 for 1/√width, and for none
}

// A part is the queries, the keys or the values of all heads: [batch, tokens, elements] or [batch, heads,
// tokens, elements of a head].
type part struct {
	v     string
	shape []int
}

// parts returns the queries, keys and values, which are a node's first inputs.
func (e *edit) parts(n onnx.Node) (out [3]part, err error) {
	for i := range out {
		shape, err := e.fixed(n.In(i))
		if err != nil {
			return out, err
		}
		out[i] = part{n.In(i), shape}
	}
	return out, nil
}

// heads splits queries, keys and values into these numbers of heads.
func (e *edit) heads(hint string, parts [3]part, counts [3]int) (heads, error) {
	a := heads{merged: len(parts[0].shape) == 3}
	for i, p := range parts {
		s := p.shape
		if len(s) == 3 {
			if counts[i] < 1 || s[2]%counts[i] != 0 {
				return a, fmt.Errorf("%d elements aren't %d heads", s[2], counts[i])
			}
			s = []int{s[0], s[1], counts[i], s[2] / counts[i]}
			p.v = e.transpose(hint, e.reshape(hint, p.v, s...), 0, 2, 1, 3)
			s[1], s[2] = s[2], s[1]
		}
		if len(s) != 4 || slices.Contains(s, 0) {
			return a, fmt.Errorf("its input %d has the shape %v", i, s)
		}
		parts[i] = part{p.v, s}
	}
	a.q, a.k, a.v = parts[0].v, parts[1].v, parts[2].v
	q, k, v := parts[0].shape, parts[1].shape, parts[2].shape
	a.batch, a.heads, a.queries, a.width = q[0], q[1], q[2], q[3]
	a.keyHeads, a.keys, a.values = k[1], k[2], v[3]
	if k[0] != a.batch || v[0] != a.batch || k[3] != a.width || v[1] != a.keyHeads || v[2] != a.keys ||
		a.heads%a.keyHeads != 0 {
		return a, fmt.Errorf("queries of the shape %v, keys of %v and values of %v don't fit", q, k, v)
	}
	return a, nil
}

// masked adds to scores the mask, and the mask of later keys. left, unless it is empty, is 1 for queries
// that a mask leaves some key, else 0.
func (e *edit) masked(hint string, a heads, scores string) (_, left string, err error) {
	bias := a.mask
	seen := bias != "" && e.elem(bias) == onnxpb.TensorProto_BOOL
	if seen {
		bias = e.op(hint, "Where",
			[]string{bias, e.scalar(hint+"/seen", 0), e.scalar(hint+"/masked", unseen)})
	}
	if a.causal {
		later, err := e.later(hint, a)
		if err != nil {
			return "", "", err
		}
		if bias == "" {
			bias = later
		} else {
			bias = e.op(hint, "Add", []string{bias, later})
		}
	}
	if bias == "" {
		return scores, "", nil
	}
	if seen && !e.leaves(a.mask, a.causal) {
		best := e.op(hint, "ReduceMax", []string{bias}, onnx.Attr{Name: "axes", Value: []int64{-1}})
		some := e.op(hint, "Greater", []string{best, e.scalar(hint+"/half", unseen/2)})
		left = e.op(hint, "Cast", []string{some}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	}
	return e.op(hint, "Add", []string{scores, bias}), left, nil
}

// later returns a mask [queries, keys] of the keys that come after a query.
func (e *edit) later(hint string, a heads) (string, error) {
	v, err := e.matrix(a.queries, a.keys)
	if err != nil {
		return "", err
	}
	for i := range v {
		if i%a.keys > i/a.keys {
			v[i] = unseen
		}
	}
	return e.weight(onnx.FloatTensor(e.m.Fresh(hint+"/later"), v, a.queries, a.keys)), nil
}

// leaves reports whether a mask is a constant that leaves every query some key.
func (e *edit) leaves(mask string, causal bool) bool {
	t := e.constant(mask)
	if t == nil || len(t.Dims) == 0 || len(t.RawData) == 0 {
		return false
	}
	rows, keys := 1, int(t.Dims[len(t.Dims)-1])
	if len(t.Dims) > 1 {
		rows = int(t.Dims[len(t.Dims)-2])
	}
	for r := 0; r*keys < len(t.RawData); r++ {
		row := t.RawData[r*keys:][:keys]
		if causal {
			row = row[:min(r%rows+1, keys)]
		}
		if !slices.Contains(row, 1) {
			return false
		}
	}
	return true
}

// elem returns the element type of a value, 0 if unknown.
func (e *edit) elem(name string) onnxpb.TensorProto_DataType {
	if t := e.constant(name); t != nil {
		return onnxpb.TensorProto_DataType(t.DataType)
	}
	return e.types[name].Elem
}
