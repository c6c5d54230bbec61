package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Behind returns how many convolutions come behind a value on the way from the input to the answer, and how
// many there are.
func Behind(g *onnx.Graph, v Value) (behind, all int) {
	from := false
	for _, n := range newPath(g).nodes {
		if n.OpType == "Conv" || n.OpType == "ConvTranspose" {
			all++
			if from {
				behind++
			}
		}
		from = from || slices.Contains(n.Output, v)
	}
	return behind, all
}
