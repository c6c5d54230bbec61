package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// fold makes fewer nodes of what was emitted, each of which is a pass over the
// activations: a product reads a matrix that was transposed for it as it was, and
// numbers that scale one after the other become one. Nodes that nobody reads any
// more stay, for [onnx.Model.Prune].
func (b *Builder) fold() {
	makers := map[Value]onnx.Node{}
	for _, n := range slices.Concat(b.g.Proto.Graph.Node, b.nodes) {
		makers[n.Output[0]] = onnx.Node{NodeProto: n}
	}
	for _, proto := range b.nodes {
		n := onnx.Node{NodeProto: proto}
		switch n.OpType {
		case "MatMul":
			b.foldTransposes(n, makers)
		case "Mul", "Div":
			b.foldScale(n, makers)
		}
	}
}

// foldTransposes makes a product with transposed matrices that one operator, ONNX
// Runtime's own. Weights are transposed when the program is loaded.
func (b *Builder) foldTransposes(n onnx.Node, makers map[Value]onnx.Node) {
	var swapped [2]int
	for i := range swapped {
		t, ok := makers[n.Input[i]]
		if ok && t.OpType == "Transpose" && b.dynamic(t.Input[0]) && swapsLast(t.Ints("perm")) {
			n.Input[i], swapped[i] = t.Input[0], 1
		}
	}
	if swapped == [2]int{} {
		return
	}
	fused := onnx.NewNode(n.Name, "FusedMatMul", n.Input, n.Output,
		onnx.Attr{Name: "transA", Value: swapped[0]}, onnx.Attr{Name: "transB", Value: swapped[1]})
	n.OpType, n.Domain, n.Attribute = fused.OpType, "com.microsoft", fused.Attribute
	b.g.Import(n.Domain, 1)
}

// swapsLast reports whether a permutation exchanges the last two axes.
func swapsLast(perm []int) bool {
	k := len(perm)
	if k < 2 || perm[k-1] != k-2 || perm[k-2] != k-1 {
		return false
	}
	for i, p := range perm[:k-2] {
		if p != i {
			return false
		}
	}
	return true
}

// foldScale makes one number of two that scale one after the other.
func (b *Builder) foldScale(n onnx.Node, makers map[Value]onnx.Node) {
	_, outer, ok := b.scale(n)
	if !ok {
		return
	}
	x, inner, ok := b.scale(makers[n.Input[0]])
	if !ok || !slices.Equal(b.Shape(x), b.Shape(n.Output[0])) {
		return
	}
	n.OpType, n.Input = "Mul", []Value{x, b.Scalar(float32(inner * outer))}
}

// scale reports which number a node multiplies x by.
func (b *Builder) scale(n onnx.Node) (x Value, by float64, ok bool) {
	if n.NodeProto == nil || n.OpType != "Mul" && n.OpType != "Div" {
		return "", 0, false
	}
	s, ok := b.g.Float32s(n.Input[1])
	if !ok || len(s) != 1 {
		return "", 0, false
	}
	if n.OpType == "Div" {
		return n.Input[0], 1 / float64(s[0]), true
	}
	return n.Input[0], float64(s[0]), true
}
