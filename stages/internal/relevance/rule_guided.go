package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Guided is the policy of guided backpropagation: rectifiers pass only positive gradients. Springenberg et
// al., "Striving for Simplicity: The All Convolutional Net", ICLR 2015 workshop, section 3.4.
func Guided() Policy {
	return Policy{Name: "guided", Cases: []Case{{rectifier, guided}}}
}

func guided(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
	return positive(b, op.VJP(b, n, r))
}

// rectifier matches operators that set negative values to 0 and keep others, up to an optional bound.
func rectifier(b *Builder, _ *Op, n onnx.Node) bool {
	switch n.OpType {
	case "Relu":
		return true
	case "Clip":
		low, ok := b.g.Float32s(n.In(1))
		return ok && len(low) == 1 && low[0] == 0
	}
	return false
}

// Rectifiers returns the number of nodes to which the guided rules apply.
func Rectifiers(g *onnx.Graph) int {
	b, count := newBuilder(g), 0
	for _, n := range g.Proto.Graph.Node {
		if rectifier(b, nil, onnx.Node{NodeProto: n}) {
			count++
		}
	}
	return count
}

func positive(b *Builder, values []Value) []Value {
	for i, v := range values {
		if v != "" {
			values[i] = b.Unary("Relu", v)
		}
	}
	return values
}
