package program_test

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestPathEndsAtTheImage holds that a path's derivative at its end is that of the layer itself, wherever the
// layer is: what goes around it is as for the image.
func TestPathEndsAtTheImage(t *testing.T) {
	all := modeltest.Nets(t, false)
	for _, name := range []string{"smallcnn", "timm_resnet_basic_bn", "timm_vit_op17", "vit"} {
		t.Run(name, func(t *testing.T) {
			n := net(t, all[name])
			slot := threaded{1, stagetest.NewSlot()}
			const batch = 4
			for _, v := range append(layers(t, n, slot, batch, 5), "") {
				q := lower.Question{Rules: relevance.Derivative(), Layer: v}
				g, err := n.Gradient(t.Context(), slot, q, batch)
				if err != nil {
					t.Fatal(err)
				}
				target := program.Target{Class: 1, Minus: 2}
				for i := range batch {
					wave(0, g.Image(i))
					g.Explain(i, target)
				}
				if err := g.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				p, err := n.Path(t.Context(), slot, q, batch)
				if err != nil {
					t.Fatal(err)
				}
				image := make([]float32, n.Size())
				wave(0, image)
				p.Set(target, make([]float32, len(g.Value(0))), g.Value(0), image)
				if err := p.Run(t.Context(), []float64{1}, []float64{1}); err != nil {
					t.Fatal(err)
				}
				var off, norm float64
				for i, want := range g.Gradient(0) {
					d := float64(p.Sum()[i] - want)
					off += d * d
					norm += float64(want) * float64(want)
				}
				if e := math.Sqrt(off / norm); !(e <= 1e-5) {
					t.Errorf("layer %q: relative error %.2g", v, e)
				}
			}
		})
	}
}

// TestLineAnswers holds that what a line is answered has the bits of a path's answers: they are the ends of
// what the path's derivatives sum to.
func TestLineAnswers(t *testing.T) {
	all := modeltest.Nets(t, false)
	for _, name := range []string{"smallcnn", "resnet", "timm_resnet_basic2_bn", "timm_vit_op17", "vit",
		"cifar10_cct4_3x1"} {
		n := net(t, all[name])
		slot := threaded{1, stagetest.NewSlot()}
		const batch = 2
		for _, v := range append(layers(t, n, slot, batch, 2), "") {
			q := lower.Question{Rules: relevance.Derivative(), Layer: v}
			path, err := n.Path(t.Context(), slot, q, batch)
			if err != nil {
				t.Fatal(err)
			}
			line, err := n.Line(t.Context(), slot, v, batch)
			if err != nil {
				t.Fatal(err)
			}
			image := make([]float32, n.Size())
			wave(0, image)
			values, _, err := n.Values(t.Context(), slot, v, [][]float32{image}, batch)
			if err != nil {
				t.Fatal(err)
			}
			from := make([]float32, len(values[0]))
			path.Set(program.Target{Class: 1, Minus: -1}, from, values[0], image)
			line.Set(from, values[0], image)
			at := []float64{0, 1}
			if err := path.Run(t.Context(), at, []float64{0, 0}); err != nil {
				t.Fatal(err)
			}
			if err := line.Run(t.Context(), at); err != nil {
				t.Fatal(err)
			}
			for i := range at {
				if !sameBits(path.Row(i), line.Row(i)) {
					t.Errorf("%s at %q: the answers at %v have other bits", name, v, at[i])
				}
			}
		}
	}
}
