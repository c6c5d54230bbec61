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
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// BenchmarkSharedForward measures five methods of one backward pass an image on a batch of 8, with a shared
// forward pass and each alone, a run of both a round; there are as many rounds as -benchtime says. METHODS,
// if set, has to name shared-forward.
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
			benchSharedForward(b,
				modeltest.Model(b,
					model.ONNXParams{Path: path, Preset: "unit", Size: picture.Size{H: 224, W: 224}}))
		})
	}
}

func benchSharedForward(b *testing.B, data stages.Data) {
	in := methodInputs(data, methodsBatch)
	methods := []stages.Stage{attribute.Saliency, attribute.InputXGradient, attribute.GuidedBackprop,
		attribute.Deconvolution, attribute.GradCAM}
	slot := stagetest.NewSlot()
	run := func(together bool) float64 {
		start := time.Now()
		var parts []stages.Part
		for i := range methods {
			e, err := stagetest.Env(&methods[i], in)
			if err != nil {
				b.Fatal(err)
			}
			e.Slot, e.Batch = slot, methodsBatch
			if parts = append(parts,
				stages.Part{Params: methods[i].NewParams(), Env: e}); together && i < len(methods)-1 {
				continue
			}
			if err := methods[i].Shared.Run(b.Context(), parts); err != nil {
				b.Fatal(err)
			}
			parts = nil
		}
		return 1000 * time.Since(start).Seconds() / methodsBatch
	}
	run(true)
	run(false)
	var together, alone []float64
	for b.Loop() {
		together, alone = append(together, run(true)), append(alone, run(false))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(together), "together-ms/image")
	b.ReportMetric(median(alone), "alone-ms/image")
	b.ReportMetric(median(alone)/median(together), "×faster")
	b.Logf("five methods, ms an image: together %.3g (%.3g to %.3g), one after the other %.3g (%.3g to %.3g)",
		median(together),
		slices.Min(together), slices.Max(together), median(alone), slices.Min(alone), slices.Max(alone))
}
