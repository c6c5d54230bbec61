package lower

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// foldBatchNorm folds every BatchNormalization that is the only reader of a Conv into that Conv: the
// weights are scaled, the bias is moved. That saves a pass over the activations forward and one backward.
// The value of the question's layer stays.
func (u *unit) foldBatchNorm() error {
	g := u.graph
	makers, readers := map[string]*onnxpb.NodeProto{}, map[string]int{u.Layer: 1}
	for _, v := range g.Outputs() {
		readers[v.Name]++
	}
	for _, node := range g.Proto.Graph.Node {
		for _, v := range node.Output {
			makers[v] = node
		}
		for _, v := range onnx.Taken(node) {
			readers[v]++
		}
	}
	g.Proto.Graph.Node = slices.DeleteFunc(g.Proto.Graph.Node, func(node *onnxpb.NodeProto) bool {
		if node.OpType != "BatchNormalization" {
			return false
		}
		defer onnx.Node{NodeProto: node}.Named()
		conv := makers[node.Input[0]]
		return conv != nil && conv.OpType == "Conv" && readers[conv.Output[0]] == 1 &&
			foldInto(g, onnx.Node{NodeProto: conv}, onnx.Node{NodeProto: node})
	})
	return nil
}

// foldInto folds norm into conv; false if that is impossible.
func foldInto(g *onnx.Graph, conv, norm onnx.Node) bool {
	if norm.Int("training_mode", 0) != 0 || len(norm.Output) != 1 {
		return false
	}
	var p [4][]float32 // scale, bias, mean, variance
	for i := range p {
		var ok bool
		if p[i], ok = g.Float32s(norm.In(1 + i)); !ok {
			return false
		}
	}
	w, ok := g.Float32s(conv.In(1))
	if !ok {
		return false
	}
	shape, filters := g.Shape(conv.In(1)), len(p[0])
	offset := make([]float32, filters)
	if conv.In(2) != "" {
		if offset, ok = g.Float32s(conv.In(2)); !ok {
			return false
		}
	}
	for _, v := range append(p[1:], offset) {
		if len(v) != filters {
			return false
		}
	}
	if filters == 0 || len(w)%filters != 0 {
		return false
	}
	epsilon := float64(norm.Float("epsilon", 1e-5))
	weights, bias := make([]float32, len(w)), make([]float32, filters)
	each := len(w) / filters
	for m := range filters {
		factor := float64(p[0][m]) / math.Sqrt(float64(p[3][m])+epsilon)
		for i := m * each; i < (m+1)*each; i++ {
			weights[i] = float32(float64(w[i]) * factor)
		}
		bias[m] = float32((float64(offset[m])-float64(p[2][m]))*factor + float64(p[1][m]))
	}
	inputs := []string{conv.Input[0], g.Fresh(conv.In(1) + "/merged"), g.Fresh(norm.In(2) + "/merged")}
	g.AddWeight(onnx.FloatTensor(inputs[1], weights, shape...))
	g.AddWeight(onnx.FloatTensor(inputs[2], bias, filters))
	from := append(slices.Clone(conv.Input[1:]), norm.Input[1:]...)
	g.Derive(inputs[1], "folded weights", from...)
	g.Derive(inputs[2], "folded bias", from...)
	conv.Input, conv.Output = inputs, []string{norm.Output[0]}
	return true
}
