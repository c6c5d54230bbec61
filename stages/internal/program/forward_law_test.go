package program_test

import (
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestSharedForwardLaw holds that programs which compare images with a reference, or look at attention, give
// answers of the same bits as the plain gradient's.
func TestSharedForwardLaw(t *testing.T) {
	all := modeltest.Nets(t, false)
	for _, name := range []string{"smallcnn", "gapcnn", "timm_resnet_basic_bn", "timm_resnet_basic2_bn",
		"timm_vit_op13", "timm_vit_op17", "vit"} {
		n := net(t, all[name])
		slot := threaded{1, stagetest.NewSlot()}
		want, _ := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
		check := func(what string, p *program.Program, run func() error) {
			if err := run(); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				if !sameBits(p.Row(i), want[i*n.Classes:(i+1)*n.Classes]) {
					t.Errorf("%s, %s: the answers have other bits than those of the plain gradient", name,
						what)
				}
			}
		}
		d, err := n.DeepLIFT(t.Context(), slot, lower.Question{}, false, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			wave(i, d.Image(i))
			d.Explain(i, program.Target{Class: i, Minus: -1})
		}
		check("DeepLIFT", d.Program, func() error { return d.Run(t.Context()) })
		for _, what := range []lower.Glance{lower.Heads, lower.Slopes, lower.Weighted,
			lower.Relevances, lower.LastRelevance, lower.Pixels} {
			a, err := n.Attention(t.Context(), slot, what, lower.Question{}, 2)
			if err != nil {
				continue // a net of convolutions
			}
			for i := range 2 {
				wave(i, a.Image(i))
				a.Explain(i, program.Target{Class: i, Minus: -1})
			}
			check(string(what), a.Program, func() error { return a.Run(t.Context()) })
		}
	}
}

// TestAnswersBits holds that an image's answer has the same bits in batches of 1, 2, 4 and 8, on one thread
// and on three.
func TestAnswersBits(t *testing.T) {
	all := modeltest.Nets(t, false)
	for _, name := range []string{"attention", "fused", "grid", "lstm", "means", "tokens"} {
		all[name] = small(t, name)
	}
	for name, p := range stagetest.SampleOf(t, 4, all) {
		n := net(t, p)
		want := classify(t, n, threaded{1, stagetest.NewSlot()}, 5, 5)
		for _, r := range []struct{ threads, batch int }{{1, 1}, {1, 4}, {3, 2}, {3, 8}, {3, 1}} {
			if !sameBits(classify(t, n, threaded{r.threads, stagetest.NewSlot()}, r.batch, 5), want) {
				t.Errorf("%s: batch %d on %d threads gives other bits than batch 5 on one", name, r.batch,
					r.threads)
			}
		}
	}
}

// classify returns a net's answers to images, at most batch of them at once.
func classify(t *testing.T, n *program.Net, slot stages.Slot, batch, images int) (answers []float32) {
	t.Helper()
	f, err := n.Forward(t.Context(), slot, batch)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < images; from += f.Batch {
		for i := range f.Batch {
			wave(from+i, f.Image(i))
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range min(f.Batch, images-from) {
			answers = append(answers, f.Row(i)...)
		}
	}
	return answers
}
