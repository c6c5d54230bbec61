package model_test

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
)

// TestMultiplyAdds compares with published numbers: MobileNetV2's paper has 300 million, and timm 1.26
// billion for ViT-Ti/16.
func TestMultiplyAdds(t *testing.T) {
	data := modeltest.Data(t)
	for name, want := range map[string][2]int64{
		"imagenet_mobilenet_v2_keras_1.0_224_dq": {300e6, 301e6},
		"imagenet_vit_tiny_patch16_224":          {1250e6, 1260e6},
	} {
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path = filepath.Join(data, "models", name+".onnx")
		x, err := model.Inspect(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if x.Trial != nil {
			x.Trial.Close()
		}
		if x.MultiplyAdds < want[0] || x.MultiplyAdds > want[1] {
			t.Errorf("%s: %d multiply-adds, want %d to %d", name, x.MultiplyAdds, want[0], want[1])
		}
	}
}
