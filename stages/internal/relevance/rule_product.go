package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// product is the rule of products of two values that depend on the image; see [Gates].
func (p LRP) product(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	if len(n.Input) != 2 {
		return refuse(b, op, n, r)
	}
	gate := -1
	if p.Gates == GatesConstant {
		gate = b.gate(n)
	}
	var back []Value
	if n.OpType == "Mul" { // element-wise: each factor may get all relevance
		back = []Value{b.Unbroadcast(r[0], b.Shape(n.Input[0])), b.Unbroadcast(r[0], b.Shape(n.Input[1]))}
	} else {
		back = p.share(b, op, n, r)
	}
	if gate >= 0 {
		back[gate] = ""
		return back
	}
	for i := range back {
		back[i] = b.scaled(back[i], 0.5)
	}
	return back
}

// softmax stops relevance if gates are constants; otherwise it is the derivative times the input: Rᵢ = xᵢ(Rᵢ
// − yᵢΣR).
func (p LRP) softmax(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	if p.Gates == GatesConstant {
		return []Value{""}
	}
	x, y := n.Input[0], n.Output[0]
	all := b.Sum(r[0], []int{b.axis(n, -1, len(b.Shape(y)))}, true)
	return []Value{b.Mul(x, b.Sub(r[0], b.Mul(y, all)))}
}
