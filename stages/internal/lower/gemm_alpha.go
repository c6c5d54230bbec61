package lower

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// gemmAlpha folds a power-of-two Mul on a Gemm's input into alpha, such as the ½ of GELU: alpha is free,
// whereas a Mul is a pass over the activations forward and one backward. Powers of two change no bits if
// the second operand is a weight; a vector times a computed matrix has a separate kernel for alpha = 1.
// Values of layers stay.
func (u *unit) gemmAlpha() error {
	g := u.graph
	readers := map[string]int{}
	for _, q := range u.questions() {
		readers[q.Layer]++
	}
	for _, v := range g.Outputs() {
		readers[v.Name]++
	}
	makers := map[string]*onnxpb.NodeProto{}
	for _, n := range g.Proto.Graph.Node {
		for _, v := range n.Output {
			makers[v] = n
		}
		for _, v := range onnx.Taken(n) {
			readers[v]++
		}
	}
	folded := map[*onnxpb.NodeProto]bool{}
	for _, node := range g.Proto.Graph.Node {
		n := onnx.Node{NodeProto: node}
		if n.OpType != "Gemm" || g.Weight(n.In(1)) == nil {
			continue
		}
		reader := node // of the scaled value
		made := makers[n.In(0)]
		if made != nil && made.OpType == "Reshape" && readers[n.In(0)] == 1 {
			reader, made = made, makers[onnx.Node{NodeProto: made}.In(0)]
		}
		if made == nil || readers[made.Output[0]] != 1 {
			continue
		}
		x, by, ok := scaled(g, onnx.Node{NodeProto: made})
		if !ok {
			continue
		}
		reader.Input[0] = x
		alpha := onnx.NewNode("", "", nil, nil,
			onnx.Attr{Name: "alpha", Value: n.Float("alpha", 1) * by}).Attribute
		node.Attribute = slices.DeleteFunc(node.Attribute,
			func(a *onnxpb.AttributeProto) bool { return a.Name == "alpha" })
		node.Attribute = append(node.Attribute, alpha...)
		folded[made] = true
	}
	g.Proto.Graph.Node = slices.DeleteFunc(g.Proto.Graph.Node,
		func(n *onnxpb.NodeProto) bool { return folded[n] })
	return nil
}

// scaled returns the value that a node multiplies by a power of two, and the power.
func scaled(g *onnx.Graph, n onnx.Node) (x string, by float32, ok bool) {
	if n.OpType != "Mul" {
		return "", 0, false
	}
	defer n.Named()
	for i, v := range n.Input {
		s, is := g.Float32s(v)
		x := n.Input[1-i]
		if is && len(s) == 1 && slices.Equal(g.Shape(x), g.Shape(n.Output[0])) {
			half, _ := math.Frexp(float64(s[0]))
			return x, s[0], half == 0.5
		}
	}
	return "", 0, false
}
