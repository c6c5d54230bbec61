package attribute_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// BenchmarkSharedForward measures methods on a batch of 8, with a shared forward pass and each alone: five of
// one backward pass an image, a plain and a balanced gradient, and three of attention. A run of both is a
// round; there are as many as -benchtime says. METHODS, if set, has to name shared-forward.
func BenchmarkSharedForward(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"resnet18", "resnet50", "vit_b_16"} {
		if !wanted("METHODS", "shared-forward") || !wanted("NETS", name) {
			continue
		}
		path := filepath.Join(root, ".bench", name+".onnx")
		b.Run(name, func(b *testing.B) {
			if _, err := os.Stat(path); err != nil {
				b.Skipf("skipped: there is no %s, which stages/internal/program/testdata/shapes.py writes",
					path)
			}
			in := methodInputs(modeltest.Model(b, model.ONNXParams{Path: path, Preset: "unit",
				Size: picture.Size{H: 224, W: 224}}), methodsBatch)
			benchShared(b, "five", in, alike(attribute.Saliency, attribute.InputXGradient,
				attribute.GuidedBackprop, attribute.Deconvolution, attribute.GradCAM))
			balanced := shares{attribute.InputXGradient, attribute.InputXGradient.NewParams()}
			set(b, balanced.params, "Backward", relevance.Balanced())
			benchShared(b, "balances", in, append(alike(attribute.InputXGradient), balanced))
			if name == "vit_b_16" {
				benchShared(b, "attention", in,
					alike(attribute.AttentionRollout, attribute.GenericAttention, attribute.LeGrad))
			}
		})
	}
}

// shares is a method with parameters.
type shares struct {
	stage  stages.Stage
	params any
}

// alike returns methods with their defaults.
func alike(methods ...stages.Stage) (all []shares) {
	for _, s := range methods {
		all = append(all, shares{s, s.NewParams()})
	}
	return all
}

func benchShared(b *testing.B, name string, in map[string][]stages.Data, methods []shares) {
	b.Run(name, func(b *testing.B) { benchSharedForward(b, in, methods) })
}

func benchSharedForward(b *testing.B, in map[string][]stages.Data, methods []shares) {
	slot := stagetest.NewSlot()
	run := func(together bool) float64 {
		start := time.Now()
		var parts []stages.Part
		for i := range methods {
			e, err := stagetest.Env(&methods[i].stage, in)
			if err != nil {
				b.Fatal(err)
			}
			e.Slot, e.Batch = slot, methodsBatch
			if parts = append(parts,
				stages.Part{Params: methods[i].params, Env: e}); together && i < len(methods)-1 {
				continue
			}
			if err := methods[i].stage.Shared.Run(b.Context(), parts); err != nil {
				b.Fatal(err)
			}
			parts = nil
		}
		return 1000 * time.Since(start).Seconds() / methodsBatch
	}
	run(true)
	run(false)
	var together, alone, faster []float64
	for b.Loop() {
		together, alone = append(together, run(true)), append(alone, run(false))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(together), "together-ms/image")
	b.ReportMetric(median(alone), "alone-ms/image")
	for k := range together {
		faster = append(faster, alone[k]/together[k])
	}
	b.ReportMetric(median(faster), "×faster")
	b.Logf("%d methods, ms an image: together %.3g (%.3g to %.3g), one after the other %.3g (%.3g to %.3g)",
		len(methods), median(together),
		slices.Min(together), slices.Max(together), median(alone), slices.Min(alone), slices.Max(alone))
}
