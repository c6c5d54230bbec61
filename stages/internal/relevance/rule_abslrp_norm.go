package relevance

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// normalised is the rule of h = γ·x̂ + β, x̂ = (x − μ)/σ, with constant statistics.
//
//   - The paper has two successive layers.
//   - The code of December 2024 has one, with the statistics of |x| in |h|(|x|).
//   - That of January has one, with |x − μ| in |h|(|x|).
func (a AbsLRP) normalised(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	x, scale := n.Input[0], b.scaleOf(n)
	mean, factor := b.statistics(n)
	switch a.Variant {
	case AbsLRPPaper:
		return a.twoLayers(b, n, r[0], b.Mul(b.Sub(x, mean), factor), scale, factor)
	case AbsLRPJanuary:
		return a.propagate(b, n, r[0], n.Output[0], func(s Value) []Value {
			like := b.Greater(b.Mul(b.Sub(x, mean), scale), b.Scalar(0))
			return []Value{b.Mul(b.Mul(b.Mul(x, factor), b.Mul(like, scale)), s)}
		})
	}
	return a.propagate(b, n, r[0], n.Output[0], func(s Value) []Value {
		size := b.Unary("Abs", x)
		c := b.Copy(n, map[int]Value{0: size})
		if op.Prepare != nil {
			op.Prepare(b, c)
		}
		_, other := b.statistics(c)
		own := b.Mul(b.Mul(x, scale), factor)
		magnitudes := b.Mul(b.Mul(size, b.Unary("Abs", scale)), other)
		return []Value{b.scaled(b.Mul(b.Add(own, magnitudes), s), 0.5)}
	})
}

// twoLayers is the rule of two layers: x̂ = (x − μ)·factor, then h = γ·x̂ + β.
func (a AbsLRP) twoLayers(b *Builder, n onnx.Node, r, normal, scale, factor Value) []Value {
	inner := a.propagate(b, n, r, n.Output[0], func(s Value) []Value {
		return []Value{b.Mul(b.positivePart(b.Mul(normal, scale)), s)}
	})
	over := func(s Value) []Value {
		return []Value{b.Mul(b.Mul(b.positivePartOf(n.Input[0]), factor), s)}
	}
	divided := func(r Value) Value {
		return b.Div(r, b.Add(b.Unary("Abs", normal), b.Scalar(tiny)))
	}
	if a.Variant == AbsLRPJanuary {
		return a.conserve(b, n, n.Input[:1], n.Output[0], inner[0],
			func(r Value) []Value { return over(divided(r)) })
	}
	return over(divided(inner[0]))
}

// batchNormalised applies equation 12 to a single layer in the code of December 2024, and to two, like
// [AbsLRP.normalised], in the paper and the code of January.
func (a AbsLRP) batchNormalised(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if a.Variant == AbsLRPOfficial {
		return a.affine(b, op, n, r)
	}
	if n.Int("training_mode", 0) != 0 {
		return op.VJP(b, n, r) // fails
	}
	rank := len(b.Shape(n.Input[0]))
	deviation := b.Unary("Sqrt", b.Add(n.Input[4], b.Scalar(n.Float("epsilon", 1e-5))))
	factor := b.channels(b.Div(b.Scalar(1), deviation), rank)
	normal := b.Mul(b.Sub(n.Input[0], b.channels(n.Input[3], rank)), factor)
	return a.twoLayers(b, n, r[0], normal, b.channels(n.Input[1], rank), factor)
}

// softmax is the rule of h = eˣ/Z with constant Z: algorithm 1. The code of January uses h for |h|(|x|).
func (a AbsLRP) softmax(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	x, h := n.Input[0], n.Output[0]
	return a.propagate(b, n, r[0], h, func(s Value) []Value {
		own := b.Mul(x, b.Mul(h, s))
		if a.Variant == AbsLRPJanuary {
			return []Value{own}
		}
		size := b.Unary("Abs", x)
		c := b.Copy(n, map[int]Value{0: size})
		return []Value{b.scaled(b.Add(own, b.Mul(size, b.Mul(c.Output[0], s))), 0.5)}
	})
}

// scaleOf returns γ of a LayerNormalization or InstanceNormalization in a shape that broadcasts with its
// input.
func (b *Builder) scaleOf(n onnx.Node) Value {
	if n.OpType == "InstanceNormalization" {
		return b.channels(n.Input[1], len(b.Shape(n.Input[0])))
	}
	return n.Input[1]
}

// statistics returns μ and 1/σ of a prepared LayerNormalization or InstanceNormalization.
func (b *Builder) statistics(n onnx.Node) (mean, factor Value) {
	if n.OpType == "LayerNormalization" {
		return n.Output[1], n.Output[2]
	}
	shape := b.Shape(n.Input[0])
	var axes []int
	for i := range shape[2:] {
		axes = append(axes, 2+i)
	}
	average := func(v Value) Value {
		return b.scaled(b.Sum(v, axes, true), float32(1/math.Max(1, float64(count(shape, axes)))))
	}
	mean = average(n.Input[0])
	centred := b.Sub(n.Input[0], mean)
	deviation := b.Unary("Sqrt", b.Add(average(b.Mul(centred, centred)), b.Scalar(n.Float("epsilon", 1e-5))))
	return mean, b.Div(b.Scalar(1), deviation)
}
