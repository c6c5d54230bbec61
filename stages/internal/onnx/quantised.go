package onnx

import (
	"slices"
	"strings"
)

// Quantised explains why a node that [Node.Quantises] has no derivative, and names a remedy.
const Quantised = "activations are rounded to integers, so the derivative is 0 wherever there is one: " +
	"explain the file that was quantised, quantise only its weights, or take a method that only asks for " +
	"answers, such as occlusion or RISE"

// Quantises reports whether a node rounds activations to integers, or computes with these: an operator of
// ONNX or of com.microsoft.
func (n Node) Quantises() bool {
	return strings.HasPrefix(n.OpType, "QLinear") || slices.Contains([]string{
		"ConvInteger", "DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeLinear",
		"DynamicQuantizeMatMul",
		"MatMulInteger", "MatMulIntegerToFloat", "QAttention", "QGemm", "QuantizeLinear",
	}, n.OpType)
}
