package program_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestGemmAlpha checks that a power-of-two Mul on a Gemm's input is folded into its alpha, unless a question
// is about the scaled value or the other operand is computed, that neither answers nor derivatives change by
// a bit, and that other factors aren't folded.
func TestGemmAlpha(t *testing.T) {
	modeltest.Runtime(t)
	n := net(t, perceptron(t, 1000, true))
	slot := threaded{1, stagetest.NewSlot()}
	plain, same := lower.Question{Rules: relevance.Derivative()}, lower.Question{Rules: apart()}
	alphas := func(q lower.Question, computed bool) (out []float32) {
		g, err := n.Graph(t.Context(), slot, 2)
		if err != nil {
			t.Fatal(err)
		}
		if computed {
			f := g.Fragment()
			f.OpTo("weights", "Identity", []string{"v"})
			g.Types["weights"] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: g.Shape("v")}
			for _, node := range g.Proto.Graph.Node {
				onnx.Retake(node, map[string]string{"v": "weights"})
			}
			g.Before(f)
		}
		if err := program.Compile(n, g, 2, q); err != nil {
			t.Fatal(err)
		}
		for _, node := range g.Proto.Graph.Node {
			if n := (onnx.Node{NodeProto: node}); n.OpType == "Gemm" {
				out = append(out, n.Float("alpha", 1))
			}
		}
		return out
	}
	look := lower.Question{Rules: relevance.Derivative(), Layer: "y"}
	// Two products, each in the forward and the backward pass.
	for _, tt := range []struct {
		name     string
		q        lower.Question
		computed bool
		want     []float32
	}{
		{"by derivatives", plain, false, []float32{1, 1.5, 1.5, 1}},
		{"by other rules", same, false, []float32{1, 3, 3, 1}},
		{"with a look at what is scaled", look, false, []float32{1, 3, 3}},
		{"with weights that are computed", plain, true, []float32{1, 3, 3, 1}},
	} {
		if got := alphas(tt.q, tt.computed); !slices.Equal(got, tt.want) {
			t.Errorf("%s, products are scaled by %v, not %v", tt.name, got, tt.want)
		}
	}
	answers, derivatives := differentiate(t, n, slot, plain, 2, 2)
	wantAnswers, wantDerivatives := differentiate(t, n, slot, same, 2, 2)
	if !sameBits(answers, wantAnswers) || !sameBits(derivatives, wantDerivatives) {
		t.Error("other bits")
	}
}
