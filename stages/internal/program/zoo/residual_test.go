package zoo

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// share returns ‖g − g₀‖/‖g‖, where g is the derivative and g₀ the derivative when nothing flows back into
// the residual branches: how much of it a wrong rule in a branch could spoil. It is NaN for nets without
// residual branches, and 1 where all paths lead through one.
func (s specimen) share(t *testing.T, n *program.Net, slot stages.Slot, g []float32) (float64, error) {
	graph, err := n.Graph(t.Context(), slot, n.Fit(2, 2))
	if err != nil {
		return 0, err
	}
	branch := branches(graph, n.Input)
	if len(branch) == 0 {
		return math.NaN(), nil
	}
	cut := relevance.Policy{Name: "residual branches cut", Cases: []relevance.Case{{
		Match: func(_ *relevance.Builder, _ *relevance.Op, n onnx.Node) bool {
			_, ok := branch[n.Output[0]]
			return ok
		},
		Rule: func(b *relevance.Builder, op *relevance.Op, n onnx.Node,
			r []relevance.Value) []relevance.Value {
			back := op.VJP(b, n, r)
			i := branch[n.Output[0]]
			back[i] = b.Zeros(b.Shape(n.Input[i])...)
			return back
		},
	}}}
	without, _, err := s.derivative(t, n, slot, cut)
	if err != nil {
		return 0, err
	}
	want := make([]float64, len(g))
	for i, v := range g {
		want[i] = float64(v)
	}
	return distance(without, want), nil
}

// branches returns the additions that end a residual block, by their output, and which operand is the branch:
// the one that more nodes in a row lead to. Both come from the image, have one shape with places or tokens,
// and meet again behind it.
func branches(g *onnx.Graph, input string) map[string]int {
	depth := map[string]int{input: 1}
	out := map[string]int{}
	for _, n := range g.Proto.Graph.Node {
		deepest := 0
		for _, v := range n.Input {
			deepest = max(deepest, depth[v])
		}
		if deepest == 0 {
			continue
		}
		for _, v := range n.Output {
			depth[v] = deepest + 1
		}
		if n.OpType != "Add" || len(g.Shape(n.Output[0])) < 3 {
			continue
		}
		a, b := n.Input[0], n.Input[1]
		if depth[a] == 0 || depth[b] == 0 || depth[a] == depth[b] || !slices.Equal(g.Shape(a), g.Shape(b)) {
			continue
		}
		out[n.Output[0]] = 0
		if depth[b] > depth[a] {
			out[n.Output[0]] = 1
		}
	}
	return out
}
