package attribute

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// atLayers are the methods that may look at any layer, at one.
func atLayers(layer string) map[string]struct {
	stage  stages.Stage
	params any
} {
	p, few := tappedAt(layer), Copies{3, 0.15, "range"}
	cam := CAM{p, false, "bilinear", joined()}
	all := map[string]struct {
		stage  stages.Stage
		params any
	}{
		"saliency":         {Saliency, &SaliencyParams{plain(p), false}},
		"input-x-gradient": {InputXGradient, &InputXGradientParams{plain(p)}},
		"integrated-gradients": {IntegratedGradients, &IntegratedGradientsParams{plain(p), 3, "middle",
			"zero"}},
		"left-ig":    {LeftIG, &LeftIGParams{plain(p), 3, 0.9, "zero"}},
		"guided-ig":  {GuidedIG, &GuidedIGParams{plain(p), "paper", 3, 0.5, 1, "zero"}},
		"smoothgrad": {SmoothGrad, &SmoothGradParams{plain(p), few, "derivative"}},
		"vargrad":    {VarGrad, &VarGradParams{plain(p), few}},
		"occlusion": {Occlusion, &OcclusionParams{p, "paper", picture.Square(3), picture.Square(2),
			"zero"}},
		"rise":                 {RISE, &RISEParams{p, 12, 2, 0.5}},
		"grad-cam":             {GradCAM, &GradCAMParams{GradientCAM{CAM: cam}}},
		"grad-cam-plus-plus":   {GradCAMPlusPlus, &GradCAMPlusPlusParams{GradientCAM{CAM: cam}, "paper"}},
		"hires-cam":            {HiResCAM, &HiResCAMParams{GradientCAM{CAM: cam}}},
		"xgrad-cam":            {XGradCAM, &XGradCAMParams{GradientCAM{CAM: cam}, "paper"}},
		"grad-cam-elementwise": {GradCAMElementwise, &GradCAMElementwiseParams{GradientCAM{CAM: cam}}},
		"eigen-cam":            {EigenCAM, &EigenCAMParams{cam, "paper"}},
		"recipro-cam":          {ReciproCAM, &ReciproCAMParams{p, "default", joined()}},
		"layer-cam":            {LayerCAM, &LayerCAMParams{GradientCAM{CAM: cam}}},
		"ablation-cam":         {AblationCAM, &AblationCAMParams{cam, "paper"}},
		"score-cam":            {ScoreCAM, &ScoreCAMParams{cam, "paper"}},
	}
	if layer == "input" { // which eigen-cam refuses
		delete(all, "eigen-cam")
	}
	return all
}

// TestMapsAtLayers checks that maps of all layers have the image's size, and say that places differ.
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

// TestMapsOfLayersSize checks that a map of the layer's size becomes, enlarged, the one of the image's.
func TestMapsOfLayersSize(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	p := tappedAt("final")
	large := mapsOf(t, InputXGradient, &InputXGradientParams{plain(p)}, in)
	p.Size = "layer"
	for i, small := range mapsOf(t, InputXGradient, &InputXGradientParams{plain(p)}, in) {
		if len(small) != 8*8 {
			t.Fatalf("%d values", len(small))
		}
		near(t, fmt.Sprintf("item %d", i), singles(resized(small, 8, 8, 32, 32, "bilinear")),
			singles(large[i]), 1e-6)
	}
}

// TestHiResCAMIsComplete checks that, for a net that averages the last layer's places and has one linear
// layer behind, the maps of two classes differ in sum by the difference of the logits, biases apart.
func TestHiResCAMIsComplete(t *testing.T) {
	in := officialInput(t, "gapcnn", "gapcnn_io", "unit")
	p := CAM{tappedAt("final"), false, "bilinear", joined()}
	p.Size, p.Target = "layer", "4"
	whole := mapsOf(t, HiResCAM, &HiResCAMParams{GradientCAM{CAM: p}}, in)
	mean := mapsOf(t, GradCAM, &GradCAMParams{GradientCAM{CAM: p}}, in)
	zero := &OcclusionParams{p.Tapped, "paper", picture.Square(64), picture.Square(64), "zero"}
	for i, fall := range mapsOf(t, Occlusion, zero, in) {
		for name, m := range map[string][]float64{"HiResCAM": whole[i], "Grad-CAM": mean[i]} {
			if !(math.Abs(sum(m)-fall[0]) <= 1e-5*math.Abs(fall[0])) {
				t.Errorf("item %d: %s sums to %v, the answer falls by %v without the layer", i, name, sum(m),
					fall[0])
			}
		}
	}
}

func TestPlanes(t *testing.T) {
	tokens := []float64{-1, -2, 1, 10, 2, 20, 3, 30, 4, 40}
	got, ok := planesOf(onnx.Tokens{}, tokens, []int{5, 2})
	if !ok || got.channels != 2 || got.height != 2 || got.width != 2 {
		t.Fatalf("%+v, %v", got, ok)
	}
	for k, want := range []float64{1, 2, 3, 4, 10, 20, 30, 40} {
		if got.values[k] != want {
			t.Errorf("value %d: %v, want %v", k, got.values[k], want)
		}
	}
	for _, shape := range [][]int{{10}, {2, 5}, {1, 1, 2, 5}} {
		if _, ok := planesOf(onnx.Tokens{}, tokens, shape); ok {
			t.Errorf("shape %v was accepted", shape)
		}
	}
}

// TestChannelsOfLayers checks that maps may keep the channels of an inner layer, at its own size, and sum to
// the maps that don't; methods that see places alone have one channel.
func TestChannelsOfLayers(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	for name, channels := range map[string]int{"input-x-gradient": 16, "integrated-gradients": 16,
		"occlusion": 1, "hires-cam": 1} {
		of := func(reduce metric.Reduction) []stages.Tensor {
			m := atLayers("final")[name]
			switch p := m.params.(type) {
			case *InputXGradientParams:
				p.Reduce, p.Size = reduce, "layer"
			case *IntegratedGradientsParams:
				p.Reduce, p.Size = reduce, "layer"
			case *OcclusionParams:
				p.Reduce, p.Size = reduce, "layer"
			case *HiResCAMParams:
				p.Reduce, p.Size = reduce, "layer"
			}
			if err := m.params.(interface{ Validate() error }).Validate(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var out []stages.Tensor
			for _, b := range stagetest.Run(t, m.stage, m.params, in).Payloads["maps"] {
				x, err := stages.DecodeTensor(b)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, x)
			}
			return out
		}
		apart, together := of("none"), of("sum")
		for i, m := range apart {
			sum := together[i].Float64s()
			if want := append([]int{channels}, together[i].Shape...); !slices.Equal(m.Shape, want) {
				t.Fatalf("%s: shape %v, want %v", name, m.Shape, want)
			}
			for k, v := range m.Float64s() {
				sum[k%len(sum)] -= v
			}
			for k, v := range sum {
				if !(math.Abs(v) <= 1e-6) {
					t.Fatalf("%s: place %d is off by %v", name, k, v)
				}
			}
		}
	}
}
