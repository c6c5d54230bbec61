package attribute

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// atLayers are the methods that may look at any layer, at one.
func atLayers(layer string) map[string]struct {
	stage  stages.Stage
	params any
} {
	p, few := tappedAt(layer), Copies{3, 0.15, "range"}
	cam := CAM{p, false, "bilinear"}
	return map[string]struct {
		stage  stages.Stage
		params any
	}{
		"saliency":             {Saliency, &SaliencyParams{p, false}},
		"input-x-gradient":     {InputXGradient, &InputXGradientParams{p}},
		"integrated-gradients": {IntegratedGradients, &IntegratedGradientsParams{p, 3, "middle", "zero"}},
		"left-ig":              {LeftIG, &LeftIGParams{p, 3, 0.9, "zero"}},
		"guided-ig":            {GuidedIG, &GuidedIGParams{p, "paper", 3, 0.5, 1, "zero"}},
		"smoothgrad":           {SmoothGrad, &SmoothGradParams{p, few, "derivative"}},
		"vargrad":              {VarGrad, &VarGradParams{p, few}},
		"occlusion":            {Occlusion, &OcclusionParams{p, "paper", 3, 2, "zero"}},
		"rise":                 {RISE, &RISEParams{p, 12, 2, 0.5}},
		"grad-cam":             {GradCAM, &GradCAMParams{cam}},
		"grad-cam-plus-plus":   {GradCAMPlusPlus, &GradCAMPlusPlusParams{cam, "paper"}},
		"hires-cam":            {HiResCAM, &HiResCAMParams{cam}},
		"layer-cam":            {LayerCAM, &LayerCAMParams{cam}},
		"ablation-cam":         {AblationCAM, &AblationCAMParams{cam, "paper"}},
		"score-cam":            {ScoreCAM, &ScoreCAMParams{cam, "paper"}},
	}
}

// TestMapsAtLayers holds that maps of all layers have the image's size, and say that
// places differ.
func TestMapsAtLayers(t *testing.T) {
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "unit")
		for _, layer := range []string{"input", "middle", "final"} {
			for name, m := range atLayers(layer) {
				for i, m := range mapsOf(t, m.stage, m.params, in) {
					if len(m) != 32*32 {
						t.Fatalf("%s: %s at %s: %d values", net, name, layer, len(m))
					}
					if least, most := slices.Min(m), slices.Max(m); !(least < most) {
						t.Errorf("%s: %s at %s, item %d: from %v to %v", net, name, layer, i, least, most)
					}
				}
			}
		}
	}
}

// TestMapsOfLayersSize holds that a map of the layer's size becomes, enlarged, the
// one of the image's.
func TestMapsOfLayersSize(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	p := tappedAt("final")
	large := mapsOf(t, InputXGradient, &InputXGradientParams{p}, in)
	p.Size = "layer"
	for i, small := range mapsOf(t, InputXGradient, &InputXGradientParams{p}, in) {
		if len(small) != 8*8 {
			t.Fatalf("%d values", len(small))
		}
		near(t, fmt.Sprintf("item %d", i), singles(resized(small, 8, 8, 32, 32, "bilinear")), singles(large[i]), 1e-6)
	}
}

// TestHiResCAMIsComplete holds that, for a net that averages the last layer's places
// and has one linear layer behind, the maps of two classes differ in sum by the
// difference of the logits, biases apart.
func TestHiResCAMIsComplete(t *testing.T) {
	in := officialInput(t, "gapcnn", "gapcnn_io", "unit")
	p := CAM{tappedAt("final"), false, "bilinear"}
	p.Size, p.Target = "layer", "4"
	whole := mapsOf(t, HiResCAM, &HiResCAMParams{p}, in)
	mean := mapsOf(t, GradCAM, &GradCAMParams{p}, in)
	zero := &OcclusionParams{p.Tapped, "paper", 64, 64, "zero"}
	for i, fall := range mapsOf(t, Occlusion, zero, in) {
		for name, m := range map[string][]float64{"HiResCAM": whole[i], "Grad-CAM": mean[i]} {
			if !(math.Abs(sum(m)-fall[0]) <= 1e-5*math.Abs(fall[0])) {
				t.Errorf("item %d: %s sums to %v, the answer falls by %v without the layer", i, name, sum(m), fall[0])
			}
		}
	}
}

func TestPlanes(t *testing.T) {
	tokens := []float64{-1, -2, 1, 10, 2, 20, 3, 30, 4, 40}
	got, err := planesOf(tokens, []int{5, 2})
	if err != nil || got.channels != 2 || got.height != 2 || got.width != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for k, want := range []float64{1, 2, 3, 4, 10, 20, 30, 40} {
		if got.values[k] != want {
			t.Errorf("value %d: %v, want %v", k, got.values[k], want)
		}
	}
	for _, shape := range [][]int{{10}, {2, 5}, {1, 1, 2, 5}} {
		if _, err := planesOf(tokens, shape); err == nil {
			t.Errorf("shape %v was accepted", shape)
		}
	}
}
