package program_test

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestGroups checks that derivatives are the same node by node, with Linear and activations grouped into one
// node each, and with each such node, Conv and Gemm emitted once more and the backward pass through the copy.
func TestGroups(t *testing.T) {
	for name, p := range stagetest.SampleOf(t, 3, modeltest.Nets(t, false)) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			slot := threaded{1, stagetest.NewSlot()}
			batch := n.Fit(2, 2)
			nodes := apart()
			nodes.Name, nodes.Grouped = "nodes", false
			_, want := differentiate(t, n, slot, lower.Question{Rules: nodes}, batch, 2)
			seen := map[string]int{}
			copies := relevance.Policy{Name: "copies", Grouped: true, Cases: []relevance.Case{{
				Match: relevance.OfKind(relevance.Affine, relevance.Activation),
				Rule: func(b *relevance.Builder, op *relevance.Op, n onnx.Node,
					r []relevance.Value) []relevance.Value {
					seen[n.OpType]++
					x := b.Unary("Identity", n.Input[0])
					return op.VJP(b, b.Copy(n, map[int]relevance.Value{0: x}), r)
				},
			}}}
			for _, rules := range []relevance.Policy{relevance.Derivative(), {Name: "grouped", Grouped: true},
				copies} {
				_, got := differentiate(t, n, slot, lower.Question{Rules: rules}, batch, 2)
				apart, norm := 0.0, 0.0
				for i := range want {
					apart += math.Pow(float64(got[i])-float64(want[i]), 2)
					norm += math.Pow(float64(want[i]), 2)
				}
				if !(math.Sqrt(apart/norm) < 1e-5) {
					t.Errorf("%s: relative deviation %g", rules.Name, math.Sqrt(apart/norm))
				}
			}
			if strings.Contains(name, "timm_vit") && (seen["Elementwise"] != 3 || seen["Gemm"] != 13) {
				t.Errorf("three blocks with a GELU and four linear maps each, and the head, are seen as %v",
					seen)
			}
		})
	}
}
