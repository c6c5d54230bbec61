package program_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// families returns questions of every family of rules, their seeds ones, and for one of them two different
// counts.
func families() []lower.Question {
	rules := append(mixed(), lrp(relevance.Epsilon(1e-6), 1e-6, true).Policy(),
		lrp(relevance.ZPlus(1e-6), 1e-6, true).Policy(), relevance.RAPPaper().Policy())
	for _, v := range []relevance.AbsLRPVariant{relevance.AbsLRPPaper, relevance.AbsLRPOfficial} {
		rules = append(rules, relevance.AbsLRP{Variant: v, MaxPool: relevance.MaxPoolAuto,
			Ablation: relevance.AblationNone}.Policy())
	}
	var out []lower.Question
	for _, r := range rules {
		out = append(out, lower.Question{Rules: r, Start: lower.StartOnes})
	}
	last := out[len(out)-1]
	last.Counts = "others"
	return append(out, last)
}

// TestSharedForwardBits checks that each question that shares its forward pass has, bit for bit, the
// derivatives and answers that it has alone; and that few groups have all questions.
func TestSharedForwardBits(t *testing.T) {
	for name, p := range stagetest.SampleOf(t, 3, modeltest.Nets(t, true)) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			slot := threaded{1, stagetest.NewSlot()}
			batch := n.Fit(2, 2)
			all := []lower.Question{
				{Rules: relevance.Derivative()}, {Rules: relevance.Guided()},
				{Rules: relevance.Balanced().Policy()}, {Rules: relevance.Deconvolution()},
				{Rules: relevance.Derivative(), Probability: true},
			}
			for _, v := range layers(t, n, slot, batch, 3) {
				all = append(all, lower.Question{Rules: relevance.Derivative(), Layer: v})
			}
			if n.Size() > 100000 {
				all = all[:4]
			} else {
				all = append(all, families()...)
			}
			var groups [][]lower.Question
			for _, q := range all {
				k := slices.IndexFunc(groups, func(g []lower.Question) bool {
					return !slices.ContainsFunc(g,
						func(o lower.Question) bool {
							return !n.OneForward(t.Context(), slot, batch, o, q)
						})
				})
				if k < 0 {
					groups, k = append(groups, nil), len(groups)
				}
				groups[k] = append(groups[k], q)
			}
			// Derivatives; rules that look at what a Conv adds to a branch; those that have
			// BatchNormalization apart; and RAP's variants, which make the same of a layer and read it
			// otherwise.
			if len(groups) > 4 {
				t.Errorf("%d questions make %d groups that may be asked together", len(all), len(groups))
			}
			for _, questions := range groups {
				var said []string
				for _, q := range questions {
					said = append(said, q.Rules.Name[:min(12, len(q.Rules.Name))]+" at "+q.Layer)
				}
				t.Logf("together: %q", said)
				checkSharedForward(t, n, slot, batch, questions)
			}
		})
	}
}

// TestSharedForwardBehind checks that branches are found behind nodes that one program scales or pads and the
// other doesn't: where rules read the output of a Conv that is otherwise fused with the sum, questions don't
// share a forward pass; but others do.
func TestSharedForwardBehind(t *testing.T) {
	node := func(op string, out string, in ...string) *onnxpb.NodeProto {
		return onnx.NewNode(out, op, in, []string{out})
	}
	nodes := []*onnxpb.NodeProto{
		node("Reshape", "x", "input", "row"), node("Gemm", "h", "x", "w"), node("Sigmoid", "gate",
			"h"), node("Mul", "g", "h", "gate"), node("Mul", "y", "g", "half"),
		node("Gemm", "z", "y", "v"), node("Reshape", "map", "z", "square"),
		node("Conv", "p", "map", "k"), node("Conv", "q", "map", "l"), node("Add", "sum", "p",
			"q"), node("Relu", "r", "sum"),
		node("GlobalAveragePool", "pooled", "r"), node("Flatten", "logits", "pooled"),
	}
	derivative, guided :=
		lower.Question{Rules: relevance.Derivative()}, lower.Question{Rules: relevance.Guided()}
	relevant := families()[0]
	for _, hidden := range []int{1000, 1024} {
		m := &onnx.Model{Proto: &onnxpb.ModelProto{
			IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
			Graph: &onnxpb.GraphProto{Name: "g", Node: nodes, Initializer: []*onnxpb.TensorProto{
				onnx.IntTensor("row", []int64{-1, 192}, 2), onnx.IntTensor("square", []int64{-1, 3, 8, 8},
					4), onnx.FloatTensor("half", []float32{0.5}),
				modeltest.Noise("w", 0.3, 192, hidden), modeltest.Noise("v", 0.7, hidden,
					192), modeltest.Noise("k", 0.5, 16, 3, 3, 3), modeltest.Noise("l", 0.9, 16, 3, 3, 3),
			}},
		}}
		m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3, 8, 8},
			Known: true})
		m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 16},
			Known: true})
		n := net(t,
			model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Size: picture.Size{H: 8, W: 8}})
		slot := threaded{1, stagetest.NewSlot()}
		if n.OneForward(t.Context(), slot, 2, derivative, relevant) {
			t.Errorf("%d channels: the derivative and relevance are asked together", hidden)
		}
		if !n.OneForward(t.Context(), slot, 2, derivative, guided) {
			t.Errorf("%d channels: the derivative and guided backpropagation aren't asked together", hidden)
		}
		checkSharedForward(t, n, slot, 2, []lower.Question{derivative, guided})
	}
}

func checkSharedForward(t *testing.T, n *program.Net, slot threaded, batch int,
	questions []lower.Question) {
	t.Helper()
	g, err := n.Gradient(t.Context(), slot, questions[0], batch, questions[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	prepare(n, g, questions...)
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for k, q := range questions {
		alone, err := n.Gradient(t.Context(), slot, q, batch)
		if err != nil {
			t.Fatal(err)
		}
		prepare(n, alone, q)
		if err := alone.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range g.Batch {
			if !sameBits(alone.Row(i), g.Row(i)) {
				t.Errorf("%s at %q: the answers have other bits", q.Rules.Name, q.Layer)
			}
			a, b := alone.Result(0, i), g.Result(k, i)
			if !sameBits(a.Gradient, b.Gradient) {
				t.Errorf("%s at %q: the derivatives have other bits", q.Rules.Name, q.Layer)
			}
			if !sameBits(a.Value, b.Value) || !sameBits(a.Seed, b.Seed) {
				t.Errorf("%s at %q: the layer's values, or what the walk begins with, have other bits",
					q.Rules.Name, q.Layer)
			}
		}
	}
}

// prepare fills the rows of a program that answers some questions.
func prepare(n *program.Net, g program.Gradient, questions ...lower.Question) {
	for i := range g.Batch {
		wave(i, g.Image(i))
		g.Explain(i, program.Target{Class: i % n.Classes, Minus: -1})
		for _, q := range questions {
			if q.Counts == "" {
				continue
			}
			counts := g.Counts(q.Counts, i)
			for k := range counts {
				counts[k] = 1 / float32(len(counts))
			}
			counts[i%n.Classes] = 0
		}
	}
}
