package model_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
)

// TestOfficialLogits holds the logits of the nets in models, read and altered as
// model/onnx does, against those that PyTorch computed for the same images.
func TestOfficialLogits(t *testing.T) {
	for net, file := range map[string]string{
		"smallcnn": "smallcnn_io.npz", "gapcnn": "gapcnn_io.npz", "gapcnn_dyn": "gapcnn_io64.npz",
		"timm_resnet_basic_bn": "timm_resnet_basic_io.npz", "timm_resnet_basic2_bn": "timm_resnet_basic2_io.npz",
		"timm_vit_op13": "timm_vit_io.npz", "timm_vit_op17": "timm_vit_io.npz",
	} {
		a, err := npy.ReadFile(filepath.Join(golden.Dir(t), "models", file))
		if err != nil {
			t.Fatal(err)
		}
		x := a["x"]
		size := 0
		if net == "gapcnn_dyn" {
			size = x.Shape[3]
		}
		b, err := modeltest.Official(t, net, size).Load(0)
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelfile.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		images, row := x.Float32s(), x.Shape[1]*x.Shape[2]*x.Shape[3]
		want := a["logits"].Float32s()
		batch := x.Shape[0]
		if m.Spec.Batch > 0 {
			batch = m.Spec.Batch
		}
		worst := 0.0
		for from := 0; from+batch <= x.Shape[0]; from += batch {
			got, err := program.Answer(t.Context(), m, images[from*row:(from+batch)*row], batch, stages.Device{Class: "cpu", Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range got {
				d := math.Abs(float64(v - want[from*m.Spec.Classes+k]))
				worst = math.Max(worst, d/math.Max(1, math.Abs(float64(v))))
			}
		}
		if !(worst <= 3e-5) {
			t.Errorf("%s: a logit is off by %.2g", net, worst)
		}
		t.Logf("%s: largest deviation %.2g", net, worst)
	}
}
