package program_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// families returns questions of every family of rules, the relevance of which starts
// with ones, and for one of them with two different counts.
func families() []program.Question {
	rules := append(mixed(), lrp(relevance.Epsilon(1e-6), 1e-6, true).Policy(), lrp(relevance.ZPlus(1e-6), 1e-6, true).Policy(), relevance.RAPPaper().Policy())
	for _, v := range []relevance.AbsLRPVariant{relevance.AbsLRPPaper, relevance.AbsLRPOfficial} {
		rules = append(rules, relevance.AbsLRP{Variant: v, MaxPool: relevance.MaxPoolAuto, Ablation: relevance.AblationNone}.Policy())
	}
	var out []program.Question
	for _, r := range rules {
		out = append(out, program.Question{Rules: r, Start: program.StartOnes})
	}
	last := out[len(out)-1]
	last.Counts = "others"
	return append(out, last)
}

// TestTogetherBits holds that each question asked together with others of one
// forward pass gets the derivatives and the answers, bit for bit, that it gets alone;
// and that few groups have all questions.
func TestTogetherBits(t *testing.T) {
	for name, p := range nets(t, !testing.Short()) {
		t.Run(name, func(t *testing.T) {
			n := net(t, p)
			slot := threaded{1, stagetest.NewSlot()}
			batch := n.Fit(2, 2)
			all := []program.Question{
				{Rules: relevance.Derivative()}, {Rules: relevance.Guided()}, {Rules: relevance.Deconvolution()},
				{Rules: relevance.Derivative(), Probability: true},
			}
			for _, v := range layers(t, n, slot, batch, 3) {
				all = append(all, program.Question{Rules: relevance.Derivative(), Layer: v})
			}
			if n.Size() > 100000 {
				all = all[:3]
			} else {
				all = append(all, families()...)
			}
			var groups [][]program.Question
			for _, q := range all {
				k := slices.IndexFunc(groups, func(g []program.Question) bool {
					return !slices.ContainsFunc(g, func(o program.Question) bool { return !n.Together(t.Context(), slot, batch, o, q) })
				})
				if k < 0 {
					groups, k = append(groups, nil), len(groups)
				}
				groups[k] = append(groups[k], q)
			}
			// Derivatives; rules that look at what a Conv adds to a branch; those that have
			// BatchNormalization apart; and RAP's variants, which make the same of a layer
			// and read it otherwise.
			if len(groups) > 4 {
				t.Errorf("%d questions make %d groups that may be asked together", len(all), len(groups))
			}
			for _, questions := range groups {
				var said []string
				for _, q := range questions {
					said = append(said, q.Rules.Name[:min(12, len(q.Rules.Name))]+" at "+q.Layer)
				}
				t.Logf("together: %q", said)
				checkTogether(t, n, slot, batch, questions)
			}
		})
	}
}

func checkTogether(t *testing.T, n *program.Net, slot threaded, batch int, questions []program.Question) {
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
			a, b := alone.Arrival(0, i), g.Arrival(k, i)
			if !sameBits(a.Gradient, b.Gradient) {
				t.Errorf("%s at %q: the derivatives have other bits", q.Rules.Name, q.Layer)
			}
			if !sameBits(a.Value, b.Value) || !sameBits(a.Began, b.Began) {
				t.Errorf("%s at %q: the layer's values, or what the walk begins with, have other bits", q.Rules.Name, q.Layer)
			}
		}
	}
}

// prepare fills the rows of a program that answers some questions.
func prepare(n *program.Net, g program.Gradient, questions ...program.Question) {
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
