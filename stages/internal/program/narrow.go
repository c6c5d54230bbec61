package program

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// narrow has the graph compute only what is read, where a few slices along an axis
// are picked of a value: a vision transformer is asked for its class token alone, so
// behind the last attention the other tokens needn't be there, nor, on the way back,
// all the zeros that they would get. The slices are picked before what treats each of
// them alike: products with constants over another axis, normalisations, functions of
// single elements. That changes no bits, since none of these looks beyond a row. A
// value that a question is about stays whole, and so does all of a graph that rules
// walk which aren't derivatives.
func narrow(g *onnx.Graph, asked []Question) {
	w := narrowing{Graph: g, wants: map[string]*pick{}, narrowed: map[string]narrower{}}
	for _, q := range asked {
		if len(q.Rules.Cases) > 0 {
			return
		}
		w.wants[q.Layer] = nil
	}
	for _, v := range g.Outputs() {
		w.wants[v.Name] = nil
	}
	for _, proto := range slices.Backward(g.Proto.Graph.Node) {
		w.look(onnx.Node{NodeProto: proto})
	}
	w.apply()
}

// few is how many slices are counted one by one: those of all images of a batch.
const few = 1 << 16

// A pick is some slices along an axis, by their numbers.
type pick struct {
	axis int
	at   []int
}

func (p pick) equal(q pick) bool { return p.axis == q.axis && slices.Equal(p.at, q.at) }

type narrowing struct {
	*onnx.Graph
	wants map[string]*pick // by value: what all that read it want of it; nil is all

	// narrowed are the values of which no more is made: what that is, and what it takes
	// of the inputs of its node.
	narrowed map[string]narrower
}

type narrower struct {
	pick
	from []*pick
}

// want notes what one more reader wants of v.
func (w *narrowing) want(v string, p *pick) {
	if other, ok := w.wants[v]; ok && (p == nil || other == nil || !p.equal(*other)) {
		p = nil
	}
	w.wants[v] = p
}

// look notes what n wants of its inputs, given what is wanted of its output.
func (w *narrowing) look(n onnx.Node) {
	defer n.Named()
	if p, ok := w.selects(n); ok {
		w.want(n.Input[0], &p)
		return
	}
	wants := make([]*pick, len(n.Input))
	if p := w.wants[n.Output[0]]; p != nil && len(n.Output) == 1 {
		if from, ok := w.through(n, *p); ok && w.there(n, from) {
			w.narrowed[n.Output[0]] = narrower{*p, from}
			wants = from
		}
	}
	for i, v := range n.Input {
		if w.Weight(v) == nil {
			w.want(v, wants[i])
		}
	}
	for _, v := range onnx.Taken(n.NodeProto) {
		if !slices.Contains(n.Input, v) {
			w.want(v, nil)
		}
	}
}

// selects returns which slices a node picks, false if it does anything else.
func (w *narrowing) selects(n onnx.Node) (pick, bool) {
	if n.OpType != "Gather" {
		return pick{}, false
	}
	shape := w.Shape(n.In(0))
	numbers, ok := w.Int64s(n.In(1))
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += len(shape)
	}
	if !ok || len(w.Shape(n.Input[1])) > 1 || axis <= 0 || axis >= len(shape) {
		return pick{}, false
	}
	p := pick{axis: axis}
	for _, k := range numbers {
		if k < 0 {
			k += int64(shape[axis])
		}
		if len(p.at) > 0 && int(k) <= p.at[len(p.at)-1] {
			return pick{}, false
		}
		p.at = append(p.at, int(k))
	}
	return p, len(p.at) < shape[axis]
}

// there reports whether the inputs of a node have the axes that it wants slices of.
func (w *narrowing) there(n onnx.Node, wants []*pick) bool {
	for i, p := range wants {
		if p != nil && (p.axis < 0 || p.axis >= len(w.Shape(n.Input[i]))) {
			return false
		}
	}
	return true
}

// through returns what n wants of its inputs to make no more than p of its output,
// false if it can't.
func (w *narrowing) through(n onnx.Node, p pick) ([]*pick, bool) {
	wants := make([]*pick, len(n.Input))
	in, out := w.Shape(n.In(0)), w.Shape(n.Output[0])
	switch n.OpType {
	case "Reshape":
		from, ok := unshape(p, in, out)
		wants[0] = &from
		return wants, ok
	case "Transpose":
		perm := n.Ints("perm")
		if len(perm) != len(out) {
			return nil, false
		}
		wants[0] = &pick{perm[p.axis], p.at}
		return wants, true
	case "MatMul":
		wants[0] = &p
		return wants, w.Weight(n.Input[0]) == nil && w.Weight(n.Input[1]) != nil && len(w.Shape(n.Input[1])) == 2 && p.axis < len(out)-1
	case "Gemm":
		wants[0] = &p
		c := w.Shape(n.In(2))
		return wants, w.Weight(n.Input[0]) == nil && n.Int("transA", 0) == 0 && w.Weight(n.Input[1]) != nil && p.axis == 0 &&
			(len(n.Input) < 3 || w.Weight(n.Input[2]) != nil && (len(c) < 2 || c[0] == 1))
	case "LayerNormalization":
		axis := n.Int("axis", -1)
		if axis < 0 {
			axis += len(in)
		}
		wants[0] = &p
		return wants, p.axis < axis
	case "Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Erf", "Softplus", "Neg", "Clip", "Add", "Sub", "Mul", "Div":
		for i, v := range n.Input {
			shape := w.Shape(v)
			switch axis := p.axis - len(out) + len(shape); {
			case axis < 0 || shape[axis] == 1: // it is repeated
			case w.Weight(v) != nil:
				return nil, false
			default:
				wants[i] = &pick{axis, p.at}
			}
		}
		return wants, true
	}
	return nil, false
}

// unshape returns which slices of a value become p of it once its shape is changed,
// false if these aren't whole slices.
func unshape(p pick, in, out []int) (pick, bool) {
	if size(in) == 0 || size(in) != size(out) || p.axis >= len(out) {
		return pick{}, false
	}
	inner := size(out[p.axis+1:])
	for axis, d := range in {
		if d == 1 || size(in[axis+1:]) != inner {
			continue
		}
		// Of the shorter axis there is one after the other along the longer one.
		whole := max(d, out[p.axis])
		if len(p.at)*(whole/out[p.axis]) > few {
			return pick{}, false
		}
		all := repeat(p.at, out[p.axis], whole)
		from := pick{axis: axis}
		for _, k := range all {
			if k < d {
				from.at = append(from.at, k)
			}
		}
		return from, whole%d == 0 && whole%out[p.axis] == 0 && len(from.at)*(whole/d) == len(all) && slices.Equal(repeat(from.at, d, whole), all)
	}
	return pick{}, false
}

// repeat returns the numbers, each below period, again for every period of a whole.
func repeat(numbers []int, period, whole int) []int {
	var out []int
	for from := 0; from < whole; from += period {
		for _, k := range numbers {
			out = append(out, from+k)
		}
	}
	return out
}

// apply has what is wanted picked where that begins, and nothing else made behind it.
func (w *narrowing) apply() {
	var nodes []*onnxpb.NodeProto
	for _, proto := range w.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		out := n.Output[0]
		p, narrowed := w.narrowed[out]
		if narrowed {
			for i, from := range p.from {
				if _, done := w.narrowed[n.Input[i]]; from == nil || done {
					continue
				}
				name := fmt.Sprintf("%s/picked %v", n.Input[i], *from)
				if _, done := w.Types[name]; !done {
					nodes = append(nodes, w.gather(name, n.Input[i], *from))
				}
				n.Input[i] = name
			}
			w.Types[out] = w.shorter(out, p.pick)
		}
		if _, picked := w.narrowed[n.In(0)]; n.OpType == "Reshape" && narrowed || picked && !narrowed {
			// What picked of a value that has no more now only changes the shape.
			n.OpType, n.Attribute, n.Input = "Reshape", nil, []string{n.Input[0], w.shape(out)}
		}
		nodes = append(nodes, proto)
	}
	w.Proto.Graph.Node = nodes
}

// gather returns the node that picks some slices of v.
func (w *narrowing) gather(name, v string, p pick) *onnxpb.NodeProto {
	at := make([]int64, len(p.at))
	for i, k := range p.at {
		at[i] = int64(k)
	}
	w.Types[name] = w.shorter(v, p)
	numbers := w.Fresh(name + "/at")
	w.AddWeight(onnx.IntTensor(numbers, at, len(at)))
	return onnx.NewNode(name, "Gather", []string{v, numbers}, []string{name}, onnx.Attr{Name: "axis", Value: p.axis})
}

// shape returns a constant of the shape of v.
func (w *narrowing) shape(v string) string {
	var long []int64
	for _, d := range w.Shape(v) {
		long = append(long, int64(d))
	}
	name := w.Fresh(v + "/shape")
	w.AddWeight(onnx.IntTensor(name, long, len(long)))
	return name
}

// shorter returns the type of what p picks of v.
func (w *narrowing) shorter(v string, p pick) onnx.Type {
	t := w.Types[v]
	t.Shape = slices.Clone(t.Shape)
	t.Shape[p.axis] = len(p.at)
	return t
}
