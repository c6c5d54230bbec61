package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Supported reports whether relevance can flow through an operator of ONNX, or is
// known to stop at it.
func Supported(opType string) bool {
	for _, o := range All() {
		if o.Type == opType {
			return true
		}
	}
	return false
}

// Rectifiers counts the nodes of a graph whose gradients the guided rules change.
func Rectifiers(g *onnx.Graph) int {
	count := 0
	for _, n := range g.Proto.Graph.Node {
		if rectifier(g, nil, onnx.Node{NodeProto: n}) {
			count++
		}
	}
	return count
}
