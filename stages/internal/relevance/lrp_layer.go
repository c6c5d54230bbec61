package relevance

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A layer is a node with weights, z = W·x + b, for rules: the indices of its inputs, bias −1 if it has none.
type layer struct {
	op                 *Op
	n                  onnx.Node
	data, weight, bias int
	biasCounts         bool // the bias gets relevance
}

// layer returns the node n as a layer, or false if it isn't one or its weights depend on the image.
func (b *Builder) layer(op *Op, n onnx.Node) (layer, bool) {
	l := layer{op: op, n: n, weight: 1, bias: -1}
	switch n.OpType {
	case "Conv", "ConvTranspose", "Gemm", "Linear":
		if n.In(2) != "" {
			l.bias = 2
		}
	case "MatMul", "Einsum":
		if len(n.Input) != 2 {
			return l, false
		}
		if b.dynamic(n.Input[1]) {
			l.data, l.weight = 1, 0
		}
	default:
		return l, false
	}
	return l, b.dynamic(n.Input[l.data]) && !b.dynamic(n.Input[l.weight]) &&
		(l.bias < 0 || !b.dynamic(n.Input[2]))
}

func weighted(b *Builder, op *Op, n onnx.Node) bool {
	_, ok := b.layer(op, n)
	return ok || n.OpType == "Gemm"
}

// x and w are the layer's data and weights.
func (l layer) x() Value { return l.n.Input[l.data] }
func (l layer) w() Value { return l.n.Input[l.weight] }

// with emits the layer with other data, weights and bias ("" for none).
func (l layer) with(b *Builder, x, w, bias Value) onnx.Node {
	operands := map[int]Value{l.data: x, l.weight: w}
	if l.bias >= 0 {
		operands[l.bias] = bias
	}
	return b.Copy(l.n, operands)
}

// b0 returns the bias if it gets relevance, otherwise "".
func (l layer) b0() Value {
	if l.bias < 0 || !l.biasCounts {
		return ""
	}
	return l.n.Input[l.bias]
}

// output emits z, without the bias unless it gets relevance.
func (l layer) output(b *Builder) Value {
	if l.bias < 0 || l.biasCounts {
		return l.n.Output[0]
	}
	return l.with(b, l.x(), l.w(), "").Output[0]
}

// contribution emits x·Wᵀs: the data of a copy of the layer times the VJP of that copy.
func (l layer) contribution(b *Builder, copied onnx.Node, s Value) Value {
	return b.Mul(copied.Input[l.data], l.adjoint(b, copied, s))
}

func (l layer) adjoint(b *Builder, copied onnx.Node, s Value) Value {
	return l.op.VJP(b, copied, []Value{s})[l.data]
}

// recordBias records the relevance of a bias, where relevance is s times the output.
func (l layer) recordBias(b *Builder, bias, s Value) {
	if bias == "" || !b.audited {
		return
	}
	b.recordConstant(b.Mul(b.added(l, bias), s))
}

// added emits the bias in a shape that broadcasts to the layer's output.
func (b *Builder) added(l layer, bias Value) Value {
	switch l.n.OpType {
	case "Conv", "ConvTranspose":
		return b.channels(bias, len(b.Shape(l.n.Output[0])))
	case "Gemm":
		return b.scaled(bias, l.n.Float("beta", 1))
	}
	return bias
}

// startsAt reports whether a seed is v, or computed from v by moves.
func (b *Builder) startsAt(v Value) bool {
	for _, seed := range b.seeds {
		for seed != v {
			n, _, ok := b.producer(seed)
			if !ok || b.op(n) == nil || b.op(n).Kind != Move {
				break
			}
			seed = n.Input[0]
		}
		if seed == v {
			return true
		}
	}
	return false
}

// A sign is the known sign of all elements of a value.
type sign int

const (
	anySign sign = iota
	atLeast0
	atMost0
)

// quotient emits r/z, with ε added to the magnitude of z, and sign(0) = +1. If ε = 0, it is 0 where z is 0.
func (b *Builder) quotient(r, z Value, epsilon float32, known sign) Value {
	if epsilon == 0 {
		size := z
		if known != atLeast0 {
			size = b.Unary("Abs", z)
		}
		some := b.step(size, 0)
		return b.Div(b.Mul(r, some), b.Add(z, b.Sub(b.Scalar(1), some)))
	}
	switch known {
	case atLeast0:
		z = b.Add(z, b.Scalar(epsilon))
	case atMost0:
		z = b.Sub(z, b.Scalar(epsilon))
	default:
		positive := b.step(z, 1)
		z = b.Add(z, b.Sub(b.Mul(positive, b.Scalar(2*epsilon)), b.Scalar(epsilon)))
	}
	return b.Div(r, z)
}

// step emits the mask that is 1 where z is positive, 0 where it is negative, and at0, 0 or 1, where it is 0.
func (b *Builder) step(z Value, at0 float32) Value {
	return b.Emit("HardSigmoid", b.Shape(z), []Value{z},
		onnx.Attr{Name: "alpha", Value: float32(math.MaxFloat32)}, onnx.Attr{Name: "beta", Value: at0})
}

// positivePart and negativePart emit x⁺ and x⁻.
func (b *Builder) positivePart(x Value) Value { return b.Unary("Relu", x) }
func (b *Builder) negativePart(x Value) Value {
	return b.Emit("Min", b.Shape(x), []Value{x, b.Scalar(0)})
}

// positiveBias and negativeBias emit the parts of an optional bias.
func (b *Builder) positiveBias(bias Value) Value {
	if bias == "" {
		return ""
	}
	return b.positivePart(bias)
}

func (b *Builder) negativeBias(bias Value) Value {
	if bias == "" {
		return ""
	}
	return b.negativePart(bias)
}

// producer returns the node of the model that produces v, and the index of v among its outputs.
func (b *Builder) producer(v Value) (n onnx.Node, output int, ok bool) {
	k, ok := b.position(v)
	if !ok {
		return onnx.Node{}, 0, false
	}
	return b.model[k], slices.Index(b.model[k].Output, v), true
}

// behindWeights reports whether a layer with weights is between the image and v.
func (b *Builder) behindWeights(v Value) bool {
	return memoise(&b.afterWeights, v, b.findWeights)
}

func (b *Builder) findWeights(v Value) bool {
	n, _, ok := b.producer(v)
	found := false
	if ok {
		if op := b.op(n); op != nil {
			_, found = b.layer(op, n)
		}
		for _, in := range n.Input {
			found = found || b.dynamic(in) && b.behindWeights(in)
		}
	}
	return found
}
