package program

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Rows that lie a multiple of 4 KiB apart share the lines of a processor's first
// cache, and a product that reads several at once is a quarter slower.
const (
	clash   = 1024 // float32 in 4 KiB
	further = 16   // in a line
)

// widen gives the hidden layer of every perceptron inside the graph a few more
// channels, if its rows would clash: a product with constants, functions of single
// elements, a product with constants. What the new ones hold counts nothing, so
// nothing else changes, not even the bits. A layer that a question is about keeps its
// form, and rules that aren't derivatives, which may divide by what counts nothing,
// keep all.
func widen(g *onnx.Graph, asked []Question) {
	w := widening{Graph: g, kept: map[string]bool{}}
	for _, q := range asked {
		if len(q.Rules.Cases) > 0 {
			return
		}
		w.kept[q.Layer] = true
	}
	for _, v := range g.Outputs() {
		w.kept[v.Name] = true
	}
	for i, n := range g.Proto.Graph.Node {
		w.perceptron(onnx.Node{NodeProto: n}, g.Proto.Graph.Node[i+1:])
	}
}

type widening struct {
	*onnx.Graph
	kept map[string]bool // what keeps its form

	hidden int             // how many channels there are
	wide   map[string]bool // the values that get more
	inner  []onnx.Node     // what makes them, but for the first
	last   []onnx.Node     // the products that read them
}

// perceptron widens the hidden layer that first makes, if it's one.
func (w *widening) perceptron(first onnx.Node, others []*onnxpb.NodeProto) {
	defer first.Named()
	if channels, ok := w.product(first); ok && channels%clash == 0 {
		w.hidden, w.wide, w.inner, w.last = channels, map[string]bool{}, nil, nil
		if w.follow(first, others) {
			w.apply(first)
		}
	}
}

// product returns how many channels a product with constants makes; false if n
// isn't one.
func (w *widening) product(n onnx.Node) (channels int, ok bool) {
	if n.OpType != "MatMul" && (n.OpType != "Gemm" || n.Int("transA", 0) != 0) || w.Weight(n.In(0)) != nil {
		return 0, false
	}
	shape := w.Shape(n.In(1))
	if w.Types[n.In(1)].Elem != onnxpb.TensorProto_FLOAT || w.Weight(n.In(1)) == nil || len(shape) != 2 ||
		n.In(2) != "" && w.Weight(n.In(2)) == nil {
		return 0, false
	}
	return shape[1-contracted(n)], true
}

// contracted returns which axis of a product's constants is summed over.
func contracted(n onnx.Node) int {
	if n.Int("transB", 0) != 0 {
		return 1
	}
	return 0
}

// follow collects what depends on the first product up to the next ones; false if
// there's none, or anything that more channels would change.
func (w *widening) follow(first onnx.Node, nodes []*onnxpb.NodeProto) bool {
	if !w.widens(first.Output[0]) {
		return false
	}
	for _, proto := range nodes {
		n := onnx.Node{NodeProto: proto}
		if !slices.ContainsFunc(onnx.Taken(proto), func(v string) bool { return w.wide[v] }) {
			continue
		}
		if _, ok := w.product(n); ok && !slices.ContainsFunc(n.Input[1:], func(v string) bool { return w.wide[v] }) &&
			w.Shape(n.Input[1])[contracted(n)] == w.hidden {
			w.last = append(w.last, n)
			continue
		}
		if !w.elementwise(n) || !w.widens(n.Output[0]) {
			return false
		}
		w.inner = append(w.inner, n)
	}
	return len(w.last) > 0
}

// widens notes that v gets more channels, false if it can't.
func (w *widening) widens(v string) bool {
	shape := w.Shape(v)
	if w.kept[v] || len(shape) == 0 || shape[len(shape)-1] != w.hidden {
		return false
	}
	w.wide[v] = true
	return true
}

// elementwise reports whether n has for the new channels finite values and
// derivatives, and a place to keep them.
func (w *widening) elementwise(n onnx.Node) bool {
	if len(n.Output) != 1 {
		return false
	}
	switch n.OpType {
	case "Reshape":
		return true
	case "Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Erf", "Softplus", "Neg", "Clip", "Add", "Sub", "Mul":
	case "Div", "Pow": // x/0 and √0 are none
		if x, ok := w.Float32s(n.Input[1]); !ok || len(x) != 1 || n.OpType == "Pow" && x[0] < 1 {
			return false
		}
	default:
		return false
	}
	for _, v := range n.Input {
		shape := w.Shape(v)
		switch {
		case v == "" || w.wide[v] || w.Weight(v) != nil && size(shape) == 1:
		case w.Weight(v) != nil && size(shape) == w.hidden && shape[len(shape)-1] == w.hidden:
			if _, ok := w.Float32s(v); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (w *widening) apply(first onnx.Node) {
	w.Types[first.Output[0]] = w.longer(first.Output[0])
	w.pad(first, 1, 1-contracted(first))
	if first.In(2) != "" {
		w.pad(first, 2, len(w.Shape(first.Input[2]))-1)
	}
	for _, n := range w.inner {
		w.Types[n.Output[0]] = w.longer(n.Output[0])
		if n.OpType == "Reshape" {
			var to []int64
			for _, d := range w.Shape(n.Output[0]) {
				to = append(to, int64(d))
			}
			n.Input[1] = w.Fresh(n.Output[0] + "/wider")
			w.AddWeight(onnx.IntTensor(n.Input[1], to, len(to)))
			continue
		}
		for i, v := range n.Input {
			if w.Weight(v) != nil && size(w.Shape(v)) == w.hidden {
				w.pad(n, i, len(w.Shape(v))-1)
			}
		}
	}
	for _, n := range w.last {
		w.pad(n, 1, contracted(n))
	}
}

// longer returns the type of v with more channels.
func (w *widening) longer(v string) onnx.Type {
	t := w.Types[v]
	t.Shape = slices.Clone(t.Shape)
	t.Shape[len(t.Shape)-1] += further
	return t
}

// pad gives a node a weight with zeros behind it along an axis; a single number
// stands for all channels already.
func (w *widening) pad(n onnx.Node, input, axis int) {
	v := n.Input[input]
	shape := w.Shape(v)
	if len(shape) == 0 || shape[axis] != w.hidden {
		return
	}
	x, _ := w.Float32s(v) // it was looked at
	longer := slices.Clone(shape)
	longer[axis] += further
	inner := size(shape[axis+1:])
	out := make([]float32, 0, size(longer))
	for from := 0; from < len(x); from += shape[axis] * inner {
		out = append(out, x[from:from+shape[axis]*inner]...)
		out = append(out, make([]float32, further*inner)...)
	}
	n.Input[input] = w.Fresh(v + "/wider")
	w.AddWeight(onnx.FloatTensor(n.Input[input], out, longer...))
	w.Derive(n.Input[input], fmt.Sprintf("%d zeros more along axis %d", further, axis), v)
}
