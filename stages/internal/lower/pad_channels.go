package lower

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Rows whose distance is a multiple of 4 KiB share the lines of a processor's first cache, and a product
// that reads several at once is a quarter slower.
const (
	aliasing = 1024 // float32 in 4 KiB
	padding  = 16   // float32 in a line
)

// padChannels pads the channels of every perceptron's hidden layer inside the graph whose rows would alias
// in the cache: a product with constants, elementwise functions, a product with constants. The new channels
// have weights of 0 in the last product, so nothing else changes, not even the bits. Values of layers keep
// their shape.
func (u *unit) padChannels() error {
	w := padder{Graph: u.graph, fixed: map[string]bool{}}
	for _, q := range u.questions() {
		w.fixed[q.Layer] = true
	}
	for _, v := range u.graph.Outputs() {
		w.fixed[v.Name] = true
	}
	for i, n := range u.graph.Proto.Graph.Node {
		w.perceptron(onnx.Node{NodeProto: n}, u.graph.Proto.Graph.Node[i+1:])
	}
	return nil
}

type padder struct {
	*onnx.Graph
	fixed map[string]bool // values that keep their shape

	hidden int             // number of channels
	padded map[string]bool // the values with more channels
	inner  []onnx.Node     // their producers, except the first
	last   []onnx.Node     // the products that read them
}

// perceptron pads the hidden layer that first computes, if it is one.
func (w *padder) perceptron(first onnx.Node, others []*onnxpb.NodeProto) {
	defer first.Named()
	if channels, ok := w.product(first); ok && channels%aliasing == 0 {
		w.hidden, w.padded, w.inner, w.last = channels, map[string]bool{}, nil, nil
		if w.follow(first, others) {
			w.apply(first)
		}
	}
}

// product returns the number of channels of a product with constants; false if n isn't one.
func (w *padder) product(n onnx.Node) (channels int, ok bool) {
	if n.OpType != "MatMul" && (n.OpType != "Gemm" || n.Int("transA", 0) != 0) || w.Weight(n.In(0)) != nil {
		return 0, false
	}
	shape := w.Shape(n.In(1))
	if w.Types[n.In(1)].Elem != onnxpb.TensorProto_FLOAT || w.Weight(n.In(1)) == nil || len(shape) != 2 ||
		n.In(2) != "" && w.Weight(n.In(2)) == nil {
		return 0, false
	}
	return shape[1-n.ContractedAxis()], true
}

// follow collects the nodes that depend on the first product up to the next products; false if there is
// none, or if more channels would change the result of a node.
func (w *padder) follow(first onnx.Node, nodes []*onnxpb.NodeProto) bool {
	if !w.pads(first.Output[0]) {
		return false
	}
	for _, proto := range nodes {
		n := onnx.Node{NodeProto: proto}
		if !slices.ContainsFunc(onnx.Taken(proto), func(v string) bool { return w.padded[v] }) {
			continue
		}
		if _, ok := w.product(n); ok &&
			!slices.ContainsFunc(n.Input[1:], func(v string) bool { return w.padded[v] }) &&
			w.Shape(n.Input[1])[n.ContractedAxis()] == w.hidden {
			w.last = append(w.last, n)
			continue
		}
		if !w.elementwise(n) || !w.pads(n.Output[0]) {
			return false
		}
		w.inner = append(w.inner, n)
	}
	return len(w.last) > 0
}

// pads records that v gets more channels, false if it can't.
func (w *padder) pads(v string) bool {
	shape := w.Shape(v)
	if w.fixed[v] || len(shape) == 0 || shape[len(shape)-1] != w.hidden {
		return false
	}
	w.padded[v] = true
	return true
}

// elementwise reports whether n has finite values and derivatives for the new channels, and can keep them.
func (w *padder) elementwise(n onnx.Node) bool {
	if len(n.Output) != 1 {
		return false
	}
	switch n.OpType {
	case "Reshape":
		return true
	case "Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Erf", "Softplus",
		"Neg", "Clip", "Add", "Sub", "Mul":
	case "Div", "Pow": // x/0 and √0 don't
		if x, ok := w.Float32s(n.Input[1]); !ok || len(x) != 1 || n.OpType == "Pow" && x[0] < 1 {
			return false
		}
	default:
		return false
	}
	for _, v := range n.Input {
		shape := w.Shape(v)
		switch {
		case v == "" || w.padded[v] || w.Weight(v) != nil && onnx.Size(shape) == 1:
		case w.Weight(v) != nil && onnx.Size(shape) == w.hidden && shape[len(shape)-1] == w.hidden:
			if _, ok := w.Float32s(v); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (w *padder) apply(first onnx.Node) {
	w.Types[first.Output[0]] = w.longer(first.Output[0])
	w.pad(first, 1, 1-first.ContractedAxis())
	if first.In(2) != "" {
		w.pad(first, 2, len(w.Shape(first.Input[2]))-1)
	}
	for _, n := range w.inner {
		w.Types[n.Output[0]] = w.longer(n.Output[0])
		if n.OpType == "Reshape" {
			shape := w.Shape(n.Output[0])
			n.Input[1] = w.Fresh(n.Output[0] + "/wider")
			w.AddWeight(onnx.IntTensor(n.Input[1], shape, len(shape)))
			continue
		}
		for i, v := range n.Input {
			if w.Weight(v) != nil && onnx.Size(w.Shape(v)) == w.hidden {
				w.pad(n, i, len(w.Shape(v))-1)
			}
		}
	}
	for _, n := range w.last {
		w.pad(n, 1, n.ContractedAxis())
	}
}

// longer returns the type of v with more channels.
func (w *padder) longer(v string) onnx.Type {
	t := w.Types[v]
	t.Shape = slices.Clone(t.Shape)
	t.Shape[len(t.Shape)-1] += padding
	return t
}

// pad pads a node's weight with zeros along an axis; a single number is for all channels already.
func (w *padder) pad(n onnx.Node, input, axis int) {
	v := n.Input[input]
	shape := w.Shape(v)
	if len(shape) == 0 || shape[axis] != w.hidden {
		return
	}
	x, _ := w.Float32s(v) // elementwise has checked that it can be read
	longer := slices.Clone(shape)
	longer[axis] += padding
	inner := onnx.Size(shape[axis+1:])
	out := make([]float32, 0, onnx.Size(longer))
	for from := 0; from < len(x); from += shape[axis] * inner {
		out = append(out, x[from:from+shape[axis]*inner]...)
		out = append(out, make([]float32, padding*inner)...)
	}
	n.Input[input] = w.Fresh(v + "/wider")
	w.AddWeight(onnx.FloatTensor(n.Input[input], out, longer...))
	w.Derive(n.Input[input], fmt.Sprintf("%d zeros more along axis %d", padding, axis), v)
}
