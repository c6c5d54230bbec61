package model_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestOfficialLogits compares the logits of the nets in models, read and rewritten as by model/onnx, with
// PyTorch's for the same images.
func TestOfficialLogits(t *testing.T) {
	for net, file := range map[string]string{
		"smallcnn": "smallcnn_io.npz", "gapcnn": "gapcnn_io.npz", "gapcnn_dyn": "gapcnn_io64.npz",
		"timm_resnet_basic_bn":  "timm_resnet_basic_io.npz",
		"timm_resnet_basic2_bn": "timm_resnet_basic2_io.npz",
		"timm_vit_op13":         "timm_vit_io.npz", "timm_vit_op17": "timm_vit_io.npz",
	} {
		a := golden.Arrays(t, filepath.Join(golden.Dir(t), "models", file))
		x := a["x"]
		size := 0
		if net == "gapcnn_dyn" {
			size = x.Shape[3]
		}
		n := modeltest.Net(t, modeltest.Official(t, net, size))
		images, row := x.Float32s(), x.Shape[1]*x.Shape[2]*x.Shape[3]
		want := a["logits"].Float32s()
		f, err := n.Forward(t.Context(), stagetest.NewSlot(), x.Shape[0])
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for from := 0; from < x.Shape[0]; from += f.Batch {
			rows := min(f.Batch, x.Shape[0]-from)
			for i := range rows {
				copy(f.Image(i), images[(from+i)*row:])
			}
			if err := f.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				for k, v := range f.Row(i) {
					d := math.Abs(float64(v - want[(from+i)*n.Classes+k]))
					worst = math.Max(worst, d/math.Max(1, math.Abs(float64(v))))
				}
			}
		}
		if !(worst <= 3e-5) {
			t.Errorf("%s: a logit is off by %.2g", net, worst)
		}
		t.Logf("%s: largest deviation %.2g", net, worst)
	}
}
