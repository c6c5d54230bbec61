package parity

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestProbabilityInBFloat16 computes a derivative of a probability, whose program OpenVINO crashed on when it
// compiled its snippets.
func TestProbabilityInBFloat16(t *testing.T) {
	slot := slotIn(t, "cpu", stages.BFloat16)
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	p := model.ONNXParams{Preset: "half", Path: filepath.Join(root, "experiments", "quickstart", "vgg.onnx")}
	w := worldOf(t, "vgg", p, "dataset/shapes", map[string]any{"count": 3, "size": 64})
	s, _ := registry.Builtin().Lookup("attribute/saliency")
	maps := func(slot stages.Slot, precision string) [][]byte {
		t.Helper()
		params := w.params(s)
		set(params, map[string]any{"output": "probability", "precision": precision})
		r, err := stagetest.TryOn(slot, *s, params, w.in(s))
		if err != nil {
			t.Fatal(err)
		}
		return r.Payloads["maps"]
	}
	want := maps(w.cpu, stages.Float32)
	for i, m := range maps(slot, stages.BFloat16) {
		for _, d := range stages.Rounded(*s.Output("maps"), nil, m, want[i]) {
			if d.By > mostRounding {
				t.Errorf("image %d deviates by %.2g", i, d.By)
			}
		}
	}
}
