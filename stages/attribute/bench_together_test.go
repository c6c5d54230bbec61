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

// BenchmarkTogether measures five methods that go back once an image on a batch of 8,
// side by side and each alone, a run of both a round.
func BenchmarkTogether(b *testing.B) {
	root, err := stagetest.Root()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"resnet18", "resnet50", "vit_b_16"} {
		path := filepath.Join(root, ".bench", name+".onnx")
		b.Run(name, func(b *testing.B) {
			if _, err := os.Stat(path); err != nil {
				b.Skipf("skipped: there is no %s, which stages/internal/program/testdata/shapes.py writes", path)
			}
			benchTogether(b, modeltest.Model(b, model.ONNXParams{Path: path, Preset: "unit", Size: picture.Size{H: 224, W: 224}}))
		})
	}
}

func benchTogether(b *testing.B, data stages.Data) {
	in := methodInputs(data, methodsBatch)
	var cells []stages.Beside
	for _, s := range []stages.Stage{attribute.Saliency, attribute.InputXGradient, attribute.GuidedBackprop, attribute.Deconvolution, attribute.GradCAM} {
		cells = append(cells, stages.Beside{Stage: &s, Params: s.NewParams()})
	}
	slot := stagetest.NewSlot()
	run := func(together bool) float64 {
		start := time.Now()
		for i, c := range cells {
			e, err := stagetest.Env(c.Stage, in)
			if err != nil {
				b.Fatal(err)
			}
			if e.Slot, e.Batch = slot, methodsBatch; together {
				e.Beside = cells[i+1:]
			}
			if err := c.Stage.Run(b.Context(), c.Params, e); err != nil {
				b.Fatal(err)
			}
		}
		return 1000 * time.Since(start).Seconds() / methodsBatch
	}
	run(true)
	run(false)
	var together, alone []float64
	for b.Loop() {
		for range 5 {
			together, alone = append(together, run(true)), append(alone, run(false))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(together), "together-ms/image")
	b.ReportMetric(median(alone), "alone-ms/image")
	b.ReportMetric(median(alone)/median(together), "×faster")
	b.Logf("five methods, ms an image: together %.3g (%.3g to %.3g), one after the other %.3g (%.3g to %.3g)", median(together),
		slices.Min(together), slices.Max(together), median(alone), slices.Min(alone), slices.Max(alone))
}
