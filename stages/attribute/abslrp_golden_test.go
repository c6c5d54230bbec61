package attribute

import (
	"fmt"
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// Relevance of one pass, computed in float32 there and here, is the same to a few last digits; the difference
// of two passes has lost one or two more.
const (
	pass32       = 2e-6
	difference32 = 1e-4
)

func absLRP(variant, contrast string) *AbsLRPParams {
	return &AbsLRPParams{Tapped: unreduced(), Variant: variant, Contrast: contrast, MaxPool: "auto",
		Ablation: "none"}
}

// officialAbsLRP pairs official numbers with the models they were made with.
var officialAbsLRP = map[string][]string{
	"smallcnn":           {"smallcnn"},
	"timm_resnet_basic":  {"timm_resnet_basic_bn"},
	"timm_resnet_basic2": {"timm_resnet_basic2_bn"},
	"timm_vit":           {"timm_vit_op13", "timm_vit_op17"},
}

// absLRPMaps returns the maps of all official images.
func absLRPMaps(t *testing.T, model stages.Data, p *AbsLRPParams, x, targets npy.Array) [][]float32 {
	t.Helper()
	var images, classes [][]byte
	size := x.Len() / x.Shape[0]
	for i := range x.Shape[0] {
		images = append(images, stages.NewTensor(x.Float32s()[i*size:(i+1)*size], x.Shape[1:]...).Encode())
		classes = append(classes, stages.NewTensor(targets.Int64s()[i:i+1], 1).Encode())
	}
	r := stagetest.Run(t, AbsLRP, p, map[string][]stages.Data{
		"model":   {model},
		"images":  {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, classes...)},
	})
	var out [][]float32
	for _, b := range r.Payloads["maps"] {
		out = append(out, tensor(t, b))
	}
	return out
}

// apart fails unless got is want within a tolerance relative to want's norm.
func apart(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	d, norm := 0.0, 0.0
	for i := range want {
		d += math.Pow(float64(got[i])-float64(want[i]), 2)
		norm += math.Pow(float64(want[i]), 2)
	}
	if !(math.Sqrt(d) <= tolerance*math.Sqrt(norm)) {
		t.Errorf("%s: relative deviation %.2g", what, math.Sqrt(d/norm))
	}
}

// TestOfficialAbsLRP holds absLRP against the code of December 2024: one pass, and the difference of two.
func TestOfficialAbsLRP(t *testing.T) {
	for file, nets := range officialAbsLRP {
		a := read(t, "abslrp", file+".npz")
		for _, net := range nets {
			model := modeltest.Official(t, net, 0)
			for _, tt := range []struct {
				key, targets, contrast string
				tolerance              float64
			}{
				{"pos", "target", "none", pass32},
				{"rel_raw", "target", "two-passes", difference32},
				{"rel_max1", "target", "variant", difference32},
				{"rel_raw_t2", "target2", "variant", difference32},
			} {
				for i, m := range absLRPMaps(t, model, absLRP("official", tt.contrast), a["x"],
					a[tt.targets]) {
					if tt.key == "rel_max1" {
						largest := float32(1e-9)
						for _, v := range m {
							largest = max(largest, v, -v)
						}
						for k := range m {
							m[k] /= largest
						}
					}
					apart(t, fmt.Sprintf("%s %s %d", net, tt.key, i), m,
						a[tt.key].Float32s()[i*len(m):(i+1)*len(m)], tt.tolerance)
				}
			}
		}
	}
}
