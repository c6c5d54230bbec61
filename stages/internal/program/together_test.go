package program_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestTogetherBits holds that each question asked together with others of one
// forward pass gets the derivatives and the answers, bit for bit, that it gets alone.
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
			}
			questions := slices.DeleteFunc(slices.Clone(all), func(q program.Question) bool { return !n.Together(t.Context(), slot, all[0], q) })
			if len(questions) < min(4, len(all)) {
				t.Fatalf("only %d of %d questions may be asked together", len(questions), len(all))
			}
			g, err := n.Gradient(t.Context(), slot, questions[0], batch, questions[1:]...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range g.Batch {
				wave(i, g.Image(i))
				g.Explain(i, program.Target{Class: i % n.Classes, Minus: -1})
			}
			if err := g.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for k, q := range questions {
				answers, alone := differentiate(t, n, slot, q, batch, g.Batch)
				var said, together []float32
				for i := range g.Batch {
					said = append(said, g.Row(i)...)
					if k == 0 {
						together = append(together, g.Gradient(i)...)
						continue
					}
					d, _, _ := g.Also(k-1, i)
					together = append(together, d...)
				}
				if !sameBits(answers, said) {
					t.Errorf("%s at %q: the answers have other bits", q.Rules.Name, q.Layer)
				}
				if !sameBits(alone, together) {
					t.Errorf("%s at %q: the derivatives have other bits", q.Rules.Name, q.Layer)
				}
			}
		})
	}
}
