package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Together reports whether two questions may be asked of one program, with one way
// forward, and each get the bits that it would get alone. The forward part of programs
// is canonical whatever way back they have; but it isn't the same
//
//   - where BatchNormalization stays apart for the one and is merged for the other;
//   - where the one looks at what a Conv or BatchNormalization makes, which then can't
//     be merged with what follows.
func (n *Net) Together(ctx context.Context, slot stages.Slot, a, b Question) bool {
	if a.Rules.Apart != b.Rules.Apart {
		return false
	}
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return false
	}
	for _, node := range g.Proto.Graph.Node {
		if node.OpType != "Conv" && node.OpType != "BatchNormalization" {
			continue
		}
		if slices.Contains(node.Output, a.Layer) || slices.Contains(node.Output, b.Layer) {
			return a.Layer == b.Layer
		}
	}
	return true
}
