package program

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Factors is each block's relevance and derivative apart, of each head.
const Factors = factors

// Widest returns the largest number of channels in the program of a question.
func Widest(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, q Question) int {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	widen(g, []Question{q})
	widest := 0
	for _, node := range g.Proto.Graph.Node {
		node := onnx.Node{NodeProto: node}
		if shape := g.Shape(node.Output[0]); len(shape) > 0 {
			widest = max(widest, shape[len(shape)-1])
		}
	}
	return widest
}

// MaskedNodes returns the operators of the program that looks at a layer's value
// through a mask.
func MaskedNodes(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, layer string) []string {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := n.compileBackward(g, 2, n.masked(layer, "all", func(value []int) []int { return value }))
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, node := range m.Proto.Graph.Node {
		ops = append(ops, node.OpType)
	}
	return ops
}

// JoinedDeepLIFT returns the program of [Net.DeepLIFT] for two images as devices have
// it that aren't processors, which make what is read of the reference in every run.
func JoinedDeepLIFT(ctx context.Context, t *testing.T, n *Net, slot stages.Slot) DeepLIFT {
	t.Helper()
	var g [2]*onnx.Graph
	for i, batch := range []int{2, 1} {
		var err error
		if g[i], err = n.Graph(ctx, slot, batch); err != nil {
			t.Fatal(err)
		}
	}
	c, err := n.compare(g[0], g[1], Question{}, false, 2, slot.Device(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return DeepLIFT{c}
}

// Narrowed returns the values of which the program of a question makes less than the
// net does, and how many times.
func Narrowed(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, q Question) map[string]float64 {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	whole := maps.Clone(g.Types)
	narrow(g, []Question{q})
	less := map[string]float64{}
	for v, was := range whole {
		if shape := g.Shape(v); !slices.Equal(shape, was.Shape) {
			less[v] = float64(size(was.Shape)) / float64(size(shape))
		}
	}
	return less
}

// Unshape is what narrow knows of a change of shape.
func Unshape(axis int, at, in, out []int) (fromAxis int, fromAt []int, ok bool) {
	p, ok := unshape(pick{axis, at}, in, out)
	return p.axis, p.at, ok
}
