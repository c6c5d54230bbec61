package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Identity returns its input.
var opIdentity = &Op{
	Type: "Identity", Kind: Move,
	VJP:      func(_ *Builder, _ onnx.Node, dy []Value) []Value { return []Value{dy[0]} },
	Examples: []Example{{Name: "any", Inputs: [][]int{{2, 3}}}},
}
