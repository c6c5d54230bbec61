package registry_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestQuickstartNets asks every net of the quickstart for the classes of 2,000 draws that no net was trained
// on.
func TestQuickstartNets(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	draws := map[string]stagetest.Result{}
	for _, domain := range []string{"a", "b"} {
		draws[domain] = stagetest.Run(t, dataset.Shapes,
			&dataset.ShapesParams{Count: 2000, Size: 64, Seed: 1000000, Domain: domain}, nil)
	}
	for name, domain := range map[string]string{"vgg": "a", "vgg-bn": "a", "resnet": "a", "vit": "a",
		"vgg-b": "b", "resnet-b": "b", "vit-b": "b"} {
		t.Run(name, func(t *testing.T) {
			p := model.ONNX.NewParams().(*model.ONNXParams)
			p.Path, p.Preset = filepath.Join("..", "experiments", "quickstart", name+".onnx"), "half"
			net := stagetest.Run(t, model.ONNX, p, nil)
			predicted := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
				"model": {stagetest.Value(net.Facts["model"], net.Payloads["model"][0])},
				"images": {stagetest.Items(draws[domain].Facts["images"],
					draws[domain].Payloads["images"]...)},
			})
			right := 0
			for i, label := range draws[domain].Payloads["labels"] {
				if bytes.Equal(predicted.Payloads["targets"][i], label) {
					right++
				}
			}
			t.Logf("%d of 2000 right", right)
			if right < 1900 {
				t.Errorf("%d of 2000 draws of domain %s are right, want 1900", right, domain)
			}
		})
	}
}
