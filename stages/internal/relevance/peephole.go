package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// optimise rewrites the emitted nodes to save passes over the activations: products read untransposed
// matrices and apply scalar factors themselves (FusedMatMul, where the device has that), and successive
// scalar factors become one. Dead nodes remain for [onnx.Model.Prune].
func (b *Builder) optimise(results ...Value) {
	f := peephole{b, map[Value]onnx.Node{}, map[Value]bool{}, map[Value]int{}}
	for _, n := range slices.Concat(b.g.Proto.Graph.Node, b.nodes) {
		f.producers[n.Output[0]] = onnx.Node{NodeProto: n}
	}
	for _, v := range results {
		f.readers[v]++
	}
	for _, n := range slices.Backward(b.nodes) {
		f.emitted[n.Output[0]] = true
		if slices.ContainsFunc(n.Output, func(v Value) bool { return f.readers[v] > 0 }) {
			for _, v := range n.Input {
				f.readers[v]++
			}
		}
	}
	emitted := b.nodes
	b.nodes = nil
	for _, proto := range emitted {
		f.optimiseNode(onnx.Node{NodeProto: proto})
		b.nodes = append(b.nodes, proto)
	}
}

type peephole struct {
	*Builder
	producers map[Value]onnx.Node
	emitted   map[Value]bool
	readers   map[Value]int // number of live nodes that read it
}

// optimise rewrites one emitted node.
func (f peephole) optimiseNode(n onnx.Node) {
	defer n.Named()
	if n.OpType == "Mul" || n.OpType == "Div" {
		f.foldScale(n)
	}
	if f.lacks("FusedMatMul") {
		return
	}
	switch n.OpType {
	case "MatMul":
		f.fuseTransposes(n)
	case "Mul", "Div":
		f.fuseScale(n)
	case "Transpose":
		f.fuseTransposed(n)
	}
}

// fuseTransposes fuses transpositions of the operands into a product, as ONNX Runtime's FusedMatMul.
// Transposed weights stay: ONNX Runtime folds them when it loads the program.
func (f peephole) fuseTransposes(n onnx.Node) {
	var swapped [2]int
	for i := range swapped {
		t, ok := f.producers[n.Input[i]]
		if ok && t.OpType == "Transpose" && f.dynamic(t.In(0)) && swapsLast(t.Ints("perm")) {
			n.Input[i], swapped[i] = t.Input[0], 1
		}
	}
	if swapped != [2]int{} {
		f.fuse(n, factoring{n.Input[0], n.Input[1], swapped, 1})
	}
}

// A factoring is a scalar times a product of two matrices, each transposed if its swapped is 1.
type factoring struct {
	x, y    Value
	swapped [2]int
	alpha   float32
}

// product returns the emitted product that computes v for a single reader, or false if v isn't a product of
// two non-constant matrices.
func (f peephole) product(v Value) (factoring, bool) {
	n := f.producers[v]
	if !f.emitted[v] || n.OpType != "MatMul" && n.OpType != "FusedMatMul" || f.readers[v] != 1 ||
		!f.dynamic(n.Input[0]) || !f.dynamic(n.Input[1]) || len(f.Shape(n.Input[0])) < 2 ||
		len(f.Shape(n.Input[1])) < 2 {
		return factoring{}, false
	}
	return factoring{n.Input[0], n.Input[1], [2]int{n.Int("transA", 0), n.Int("transB", 0)},
		n.Float("alpha", 1)}, true
}

// fuse turns n into the FusedMatMul that computes p.
func (f peephole) fuse(n onnx.Node, p factoring) {
	fused := onnx.NewNode(n.Name, "FusedMatMul", []Value{p.x, p.y}, n.Output,
		onnx.Attr{Name: "transA", Value: p.swapped[0]}, onnx.Attr{Name: "transB", Value: p.swapped[1]},
		onnx.Attr{Name: "alpha", Value: p.alpha})
	n.OpType, n.Domain, n.Input, n.Attribute = fused.OpType, "com.microsoft", fused.Input, fused.Attribute
	f.g.Import(n.Domain, 1)
}

// fuseScale moves a scalar factor of a product into the product's alpha.
func (f peephole) fuseScale(n onnx.Node) {
	x, by, ok := f.scale(n)
	if !ok || !slices.Equal(f.Shape(x), f.Shape(n.Output[0])) {
		return
	}
	if p, ok := f.product(x); ok {
		p.alpha = float32(float64(p.alpha) * by)
		f.fuse(n, p)
	}
}

// fuseTransposed replaces the transposition of a product by the product of the transposed factors: (X·Y)ᵀ =
// Yᵀ·Xᵀ. The remaining permutation, if any, moves whole rows.
func (f peephole) fuseTransposed(n onnx.Node) {
	perm := n.Ints("perm")
	k := len(perm) - 2
	p, ok := f.product(n.Input[0])
	if !ok || k < 0 || slices.Index(perm, k+1) > slices.Index(perm, k) {
		return
	}
	p = factoring{p.y, p.x, [2]int{1 - p.swapped[1], 1 - p.swapped[0]}, p.alpha}
	i, j := slices.Index(perm, k), slices.Index(perm, k+1)
	perm[i], perm[j] = k+1, k
	if slices.IsSorted(perm) {
		f.fuse(n, p)
		return
	}
	shape := slices.Clone(f.Shape(n.Input[0]))
	shape[k], shape[k+1] = shape[k+1], shape[k]
	f.node = n.Output[0]
	v := f.Emit("MatMul", shape, []Value{p.x, p.y})
	f.fuse(onnx.Node{NodeProto: f.nodes[len(f.nodes)-1]}, p)
	n.Input = []Value{v}
	long := make([]int64, len(perm))
	for i, axis := range perm {
		long[i] = int64(axis)
	}
	n.Attribute = onnx.NewNode("", "", nil, nil, onnx.Attr{Name: "perm", Value: long}).Attribute
}

// swapsLast reports whether a permutation exchanges exactly the last two axes.
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

// foldScale combines two successive scalar factors.
func (f peephole) foldScale(n onnx.Node) {
	_, outer, ok := f.scale(n)
	if !ok {
		return
	}
	x, inner, ok := f.scale(f.producers[n.Input[0]])
	if !ok || !slices.Equal(f.Shape(x), f.Shape(n.Output[0])) {
		return
	}
	n.OpType, n.Input = "Mul", []Value{x, f.Scalar(float32(inner * outer))}
}

// scale returns the scalar factor of a node, and its other operand x.
func (b *Builder) scale(n onnx.Node) (x Value, by float64, ok bool) {
	if n.NodeProto == nil || n.OpType != "Mul" && n.OpType != "Div" {
		return "", 0, false
	}
	if size(b.Shape(n.In(1))) != 1 {
		return "", 0, false
	}
	s, ok := b.g.Float32s(n.In(1))
	if !ok || len(s) != 1 {
		return "", 0, false
	}
	if n.OpType == "Div" {
		return n.Input[0], 1 / float64(s[0]), true
	}
	return n.Input[0], float64(s[0]), true
}
