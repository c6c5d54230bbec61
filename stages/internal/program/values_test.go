package program_test

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestSubstituteLayer checks programs that substitute a layer's value: with the value of an image they give
// the net's answer and derivative for it, to the last bit where the value isn't computed.
func TestSubstituteLayer(t *testing.T) {
	all := modeltest.Nets(t, false)
	for _, name := range []string{"smallcnn", "timm_resnet_basic_bn", "timm_vit_op17", "vit"} {
		t.Run(name, func(t *testing.T) {
			n, ctx := net(t, all[name]), t.Context()
			slot := threaded{1, stagetest.NewSlot()}
			const batch = 2
			image := make([]float32, n.Size())
			wave(0, image)
			for _, v := range append(layers(t, n, slot, batch, 4), "") {
				q := lower.Question{Rules: relevance.Derivative(), Layer: v}
				target := program.Target{Class: 1, Minus: 2}
				g, err := n.Gradient(ctx, slot, q, batch)
				if err != nil {
					t.Fatal(err)
				}
				for i := range g.Batch {
					copy(g.Image(i), image)
					g.Explain(i, target)
				}
				if err := g.Run(ctx); err != nil {
					t.Fatal(err)
				}
				values, shape, err := n.Values(ctx, slot, v, [][]float32{image, image, image}, batch)
				if err != nil {
					t.Fatal(err)
				}
				if len(values) != 3 || !sameBits(values[2], g.Value(0)) || !slices.Equal(shape, g.Shape()) {
					t.Errorf("layer %q: its value has other bits than with the derivative, or another "+
						"shape: %v", v, shape)
				}

				m, err := n.MaskedLayer(ctx, slot, v, "all", func(value []int) []int { return value }, batch)
				if err != nil {
					t.Fatal(err)
				}
				for i := range m.Mask(0) {
					m.Mask(0)[i], m.Mask(1)[i] = 1, float32(i%2)
				}
				m.Set(g.Value(0), values[1], image) // hidden by what it hides
				if err := m.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if !sameBits(m.Row(0), g.Row(0)) || !sameBits(m.Row(1), g.Row(0)) {
					t.Errorf("layer %q, masked: %v, want %v", v, m.Row(0), g.Row(0))
				}

				s, err := n.Slope(ctx, slot, q, batch)
				if err != nil {
					t.Fatal(err)
				}
				for i := range s.Batch {
					s.Set(i, target, image)
					copy(s.Value(i), g.Value(0))
				}
				if err := s.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if !sameBits(s.Row(0), g.Row(0)) || !sameBits(s.Gradient(0), g.Gradient(0)) {
					t.Errorf("layer %q: answer or derivative have other bits when the value is put there", v)
				}

				l, err := n.Line(ctx, slot, v, batch)
				if err != nil {
					t.Fatal(err)
				}
				l.Set(make([]float32, len(g.Value(0))), g.Value(0), image)
				if err := l.Run(ctx, []float64{0.5, 1}); err != nil {
					t.Fatal(err)
				}
				for c, want := range g.Row(0) {
					if !(math.Abs(float64(l.Row(1)[c]-want)) <= 1e-5*math.Max(1, math.Abs(float64(want)))) {
						t.Errorf("layer %q, class %d at the line's end: %v, want %v", v, c, l.Row(1)[c], want)
					}
				}
			}
		})
	}
}

// TestNothingBeforeTheLayer checks that a program that substitutes a layer that everything passes through
// doesn't compute what is before it.
func TestNothingBeforeTheLayer(t *testing.T) {
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	slot := threaded{1, stagetest.NewSlot()}
	for layer, want := range map[string]int{"": 3, "/relu2/Relu_output_0": 1, "/relu3/Relu_output_0": 0} {
		ops := program.MaskedNodes(t.Context(), t, n, slot, layer)
		count := 0
		for _, op := range ops {
			if op == "Conv" {
				count++
			}
		}
		if count != want {
			t.Errorf("layer %q: %d convolutions of %v, want %d", layer, count, ops, want)
		}
	}
}
