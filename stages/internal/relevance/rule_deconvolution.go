package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Deconvolution is the policy of the deconvolutional net: a rectifier passes positive relevance, independent
// of the forward pass. Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014,
// section 2.1.
func Deconvolution() Policy {
	return Policy{Name: "deconvolution", Cases: []Case{{rectifier, deconvolution}}}
}

func deconvolution(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
	back := make([]Value, len(n.Input))
	back[0] = r[0]
	return positive(b, back)
}
