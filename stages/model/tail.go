package model

import (
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// mostTail bounds the values that are examined after the last linear layers.
const mostTail = 64

// tail returns the values from which an output is computed, back to the last linear layers, whose outputs
// are among them. The output comes first.
func (all *guarantees) tail(output string) []string {
	out := []string{output}
	for i := 0; i < len(out) && len(out) < mostTail; i++ {
		n, ok := all.makers[out[i]]
		if !ok || ruleOf(n) == nil || all.isLayer(out[i]) {
			continue
		}
		for _, v := range n.Input {
			maker, made := all.makers[v]
			if made && all.of[v].varies && ruleOf(maker) != nil && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// layers are the operators of linear layers.
var layers = []string{"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "ConvInteger", "MatMulInteger",
	"QLinearConv", "QLinearMatMul", "FusedMatMul", "MatMulNBits", "QGemm", "DynamicQuantizeMatMul",
	"MatMulIntegerToFloat", "NhwcConv"}

// isLayer reports whether a value is made by a linear layer that doesn't just mix probabilities.
func (all *guarantees) isLayer(value string) bool {
	n, ok := all.makers[value]
	return ok && slices.Contains(layers, n.OpType) && all.of[value].by == ""
}

// between returns the operators on the paths from one value to another, in the order of the graph.
func (all *guarantees) between(from, to string, nodes []onnx.Node) []onnx.Node {
	reached := map[string]bool{from: true}
	var ahead []onnx.Node
	for _, n := range nodes {
		if slices.ContainsFunc(n.Input, func(v string) bool { return reached[v] }) {
			ahead = append(ahead, n)
			for _, v := range n.Output {
				reached[v] = reached[v] || v != from
			}
		}
	}
	needed := map[string]bool{to: true}
	var out []onnx.Node
	for _, n := range slices.Backward(ahead) {
		if slices.ContainsFunc(n.Output, func(v string) bool { return needed[v] }) {
			out = append(out, n)
			for _, v := range n.Input {
				needed[v] = needed[v] || v != from
			}
		}
	}
	slices.Reverse(out)
	return out
}

// joined reports whether nodes after a value have another input that depends on the image, which may have
// been the same for the tried images.
func (all *guarantees) joined(nodes []onnx.Node, from string) bool {
	behind := map[string]bool{from: true}
	for _, n := range nodes {
		for _, v := range n.Output {
			behind[v] = true
		}
	}
	return slices.ContainsFunc(nodes, func(n onnx.Node) bool {
		return slices.ContainsFunc(n.Input, func(v string) bool { return all.of[v].varies && !behind[v] })
	})
}

// bends reports whether a node may change numbers outside the range of the tried images: a bound below or
// above which they are others. Bounds that probabilities don't reach change nothing.
func (all *guarantees) bends(n onnx.Node) bool {
	if !slices.Contains(bending, n.OpType) || len(n.Output) == 0 {
		return false
	}
	if all.texts && n.OpType == "Max" && slices.ContainsFunc(n.Input,
		func(v string) bool { return !all.of[v].varies && math.IsInf(all.of[v].high, -1) }) {
		// JAX compares a ReduceMax with −∞, which changes nothing. Models of images are read as before: their
		// keys have the version of model/onnx, which this reading would raise.
		return false
	}
	out := all.of[n.Output[0]]
	for _, v := range n.Input {
		x := all.of[v]
		switch {
		case !x.varies:
		case !x.probability():
			return true
		case x.log:
			low, high := out.low, out.high
			if x.unit < 0 {
				low, high = high, low
			}
			return math.Exp(low/x.unit) > probabilityTolerance ||
				math.Exp(high/x.unit) < 1-probabilityTolerance
		default:
			return math.Abs(out.low-x.low) > probabilityTolerance*x.unit ||
				math.Abs(out.high-x.high) > probabilityTolerance*x.unit
		}
	}
	return false
}

// mixes reports whether a node computes a number from several classes, as any Softmax does.
func mixes(n onnx.Node) bool {
	return isLayer(n) || strings.HasPrefix(n.OpType, "Reduce") || strings.HasSuffix(n.OpType, "Softmax")
}

// decides reports whether a node's output can't be the numbers of classes.
func (all *guarantees) decides(n onnx.Node) bool {
	return len(n.Output) > 0 && all.of[n.Output[0]].never != ""
}

// bending are the piecewise functions.
var bending = []string{"Clip", "Relu", "LeakyRelu", "PRelu", "Elu", "Celu", "Selu", "ThresholdedRelu", "Max",
	"Min", "Where", "HardSigmoid", "HardSwish", "Abs", "Shrink"}

// operators names the operators of nodes, without views.
func operators(nodes []onnx.Node) []string {
	var out []string
	for _, n := range nodes {
		if !isView(n) {
			out = append(out, n.OpType)
		}
	}
	return out
}

// views are the operators that don't change numbers, except a Cast to whole numbers.
var views = []string{"Identity", "Flatten", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Dropout", "Cast"}

func isView(n onnx.Node) bool {
	return slices.Contains(views, n.OpType) && (n.OpType != "Cast" ||
		floating(onnxpb.TensorProto_DataType(n.Int("to", 0))))
}

// distance labels the node that squares or takes the magnitude of the terms of a sum; "" if there is none.
func (all *guarantees) distance(value string) string {
	for {
		n := all.makers[value]
		if n.NodeProto == nil || len(n.Input) == 0 {
			return ""
		}
		switch n.OpType {
		case "ReduceL1", "ReduceL2", "ReduceSumSquare":
			return n.Label()
		case "Abs", "Pow":
			if all.of[value].low >= 0 {
				return n.Label()
			}
			return ""
		case "Mul":
			if n.In(0) == n.In(1) {
				return n.Label()
			}
			return ""
		case "ReduceMean", "ReduceSum", "Sqrt":
		default:
			if !isView(n) {
				return ""
			}
		}
		value = n.In(0)
	}
}
