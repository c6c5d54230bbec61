package attribute

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// gradientStages are the methods of this package that go backwards or look at inner layers, at little cost.
func gradientStages() map[string]struct {
	stage  stages.Stage
	params any
} {
	smooth := *SmoothGrad.NewParams().(*SmoothGradParams)
	smooth.Samples = 5
	return map[string]struct {
		stage  stages.Stage
		params any
	}{
		"saliency":         {Saliency, Saliency.NewParams()},
		"input-x-gradient": {InputXGradient, InputXGradient.NewParams()},
		"integrated-gradients": {IntegratedGradients, &IntegratedGradientsParams{plain(tapped()), 9,
			"gauss-legendre", "black"}},
		"at the middle": {IntegratedGradients, &IntegratedGradientsParams{plain(tappedAt("middle")), 9,
			"left", "black"}},
		"smoothgrad":            {SmoothGrad, &smooth},
		"guided-backprop":       {GuidedBackprop, GuidedBackprop.NewParams()},
		"deconvolution":         {Deconvolution, Deconvolution.NewParams()},
		"grad-cam":              {GradCAM, GradCAM.NewParams()},
		"guided-grad-cam":       {GuidedGradCAM, GuidedGradCAM.NewParams()},
		"grad-cam-plus-plus":    {GradCAMPlusPlus, GradCAMPlusPlus.NewParams()},
		"left-ig":               {LeftIG, &LeftIGParams{plain(tapped()), 9, 0.9, "black"}},
		"left-ig at the middle": {LeftIG, &LeftIGParams{plain(tappedAt("middle")), 9, 0.9, "black"}},
		"occlusion at the middle": {Occlusion, &OcclusionParams{tappedAt("middle"), "paper",
			picture.Square(3), picture.Square(2), "black"}},
		"rise at the final layer": {RISE, &RISEParams{tappedAt("final"), 21, 2, 0.5}},
		"guided-ig": {GuidedIG, &GuidedIGParams{plain(probable()), "paper", 5, 0.25, 0.1,
			"black"}},
		"guided-ig at the middle": {GuidedIG, &GuidedIGParams{plain(tappedAt("middle")), "official-mas", 5,
			0.25,
			0.1, "black"}},
		"agi":                  {AGI, &AGIParams{probable().Common, Balanced{}, "paper", 4, 3, 0.05}},
		"vargrad":              {VarGrad, &VarGradParams{plain(tapped()), Copies{5, 0.15, "range"}}},
		"hires-cam":            {HiResCAM, HiResCAM.NewParams()},
		"layer-cam":            {LayerCAM, LayerCAM.NewParams()},
		"xgrad-cam":            {XGradCAM, XGradCAM.NewParams()},
		"grad-cam-elementwise": {GradCAMElementwise, GradCAMElementwise.NewParams()},
		"eigen-cam":            {EigenCAM, EigenCAM.NewParams()},
		"refine-cam":           {RefineCAM, RefineCAM.NewParams()},
		"full-grad":            {FullGrad, FullGrad.NewParams()},
		"recipro-cam":          {ReciproCAM, ReciproCAM.NewParams()},
		"ablation-cam":         {AblationCAM, AblationCAM.NewParams()},
		"score-cam": {ScoreCAM, &ScoreCAMParams{CAM{tappedAt("middle"), false, "nearest", joined()},
			"paper"}},
	}
}

func tappedAt(layer string) Tapped {
	p := tapped()
	p.Layer = Layers(layer)
	return p
}

// TestGradientBits checks that maps don't depend on batches and threads.
func TestGradientBits(t *testing.T) {
	some := stagetest.SampleOf(t, 3, gradientStages())
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "unit")
		for _, m := range some {
			modeltest.InvariantStage(t, m.stage, m.params, "maps", in)
		}
	}
}

// TestGradientIsTheSlope holds saliency, for every output and kind of target, against differences of the
// answer to images a small step apart.
func TestGradientIsTheSlope(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	two := stages.NewTensor([]int64{2, 6}, 2).Encode()
	for _, output := range []string{"logit", "probability"} {
		for _, target := range []string{"predicted", "label", "4"} {
			p := &SaliencyParams{plain(unreduced()), false}
			p.Target, p.Output = target, output
			if target == "predicted" {
				in["targets"] = []stages.Data{stagetest.Items(nil, two, two)}
			}
			maps := mapsOf(t, Saliency, p, in)
			for i, m := range maps {
				along := 0.0
				for _, g := range m {
					along += g * g
				}
				along = math.Sqrt(along)
				// One step of length h up the gradient changes the answer by h times its length; halves of
				// float32's digits are lost in the difference.
				const h = 1e-2
				x, err := stages.DecodeTensor(payload(t, in["images"][0], i))
				if err != nil {
					t.Fatal(err)
				}
				ends := make([]float64, 2)
				for k, sign := range []float64{-1, 1} {
					moved := x.Float32s()
					for j := range moved {
						moved[j] += float32(sign * h / 2 * m[j] / along)
					}
					ends[k] = answerTo(t, in, p.Common, i, moved)
				}
				if slope := (ends[1] - ends[0]) / h; !(math.Abs(slope-along) <= 0.02*along) {
					t.Errorf("target %s, %s, image %d: the answer rises by %v, the gradient says %v", target,
						output, i, slope, along)
				}
			}
		}
	}
}

func payload(t *testing.T, d stages.Data, i int) []byte {
	t.Helper()
	b, err := d.Load(i)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answerTo returns the explained number of item i, were its image x.
func answerTo(t *testing.T, in map[string][]stages.Data, p Common, i int, x []float32) float64 {
	t.Helper()
	one := map[string][]stages.Data{"model": in["model"], "images": {stagetest.Items(nil,
		stages.NewTensor(x, 3, 32, 32).Encode())}}
	for _, port := range []string{"targets", "labels"} {
		one[port] = []stages.Data{stagetest.Items(nil, payload(t, in[port][0], i))}
	}
	// A window over everything: what the answer falls from the image to zero.
	o := &OcclusionParams{Tapped: Tapped{Common: p}, Variant: "paper", Window: picture.Square(32),
		Stride: picture.Square(32), Baseline: "zero"}
	o.Reduce = "sum"
	return mapsOf(t, Occlusion, o, one)[0][0]
}

// TestIntegratedGradientsAreComplete checks that attributions sum to the fall of the answer, at the input and
// at inner layers, for any baseline and output.
func TestIntegratedGradientsAreComplete(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "imagenet")
	for _, layer := range []string{"input", "middle", "final"} {
		for _, baseline := range []string{"zero", "black"} {
			for _, output := range []string{"logit", "probability"} {
				p := &IntegratedGradientsParams{plain(tappedAt(layer)), 200, "gauss-legendre", baseline}
				p.Output = output
				r := stagetest.Run(t, IntegratedGradients, p, in)
				for i, b := range r.Payloads["completeness"] {
					excess, err := stages.ScalarOf(b)
					if err != nil || !(math.Abs(excess) <= 0.05) { // answers fall by 10 to 50
						t.Errorf("layer %s, baseline %s, %s, item %d: %v is left over (%v)", layer, baseline,
							output, i, excess, err)
					}
				}
				if layer != "input" {
					continue
				}
				// The same fall, from occlusion of everything.
				o := &OcclusionParams{Tapped: p.Tapped, Variant: "paper", Window: picture.Square(32),
					Stride: picture.Square(32), Baseline: baseline}
				for i, m := range mapsOf(t, Occlusion, o, in) {
					sum := 0.0
					for _, v := range tensor(t, r.Payloads["maps"][i]) {
						sum += float64(v)
					}
					if !(math.Abs(sum-m[0]) <= 0.05) {
						t.Errorf("baseline %s, %s, item %d: the map sums to %v, the answer falls by %v",
							baseline, output, i, sum, m[0])
					}
				}
			}
		}
	}
}

// TestSmoothGradWithoutNoise checks that it is the gradient.
func TestSmoothGradWithoutNoise(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	for mean, of := range map[string]func(float64) float64{
		"derivative": func(g float64) float64 { return g },
		"magnitude":  math.Abs,
		"square":     func(g float64) float64 { return g * g },
	} {
		p := *SmoothGrad.NewParams().(*SmoothGradParams)
		p.Noise, p.Mean, p.Reduce, p.Samples = 0, mean, "none", 11
		got := mapsOf(t, SmoothGrad, &p, in)
		for i, want := range mapsOf(t, Saliency, &SaliencyParams{plain(unreduced()), false}, in) {
			for k := range want {
				if !(math.Abs(got[i][k]-of(want[k])) <= 2e-6) {
					t.Fatalf("%s, value %d: %v, want %v", mean, k, got[i][k], of(want[k]))
				}
			}
		}
	}
}

// TestNoiseIsOfTheImage checks that noise depends on the seed and the image, and not on which images come
// before it.
func TestNoiseIsOfTheImage(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	p := *SmoothGrad.NewParams().(*SmoothGradParams)
	p.Samples = 3
	at := func(seed uint64, order ...int) []string {
		some := map[string][]stages.Data{"model": in["model"]}
		for _, port := range []string{"images", "targets", "labels"} {
			var items [][]byte
			for _, i := range order {
				items = append(items, payload(t, in[port][0], i))
			}
			some[port] = []stages.Data{stagetest.Items(nil, items...)}
		}
		e, err := stagetest.Env(&SmoothGrad, some)
		if err != nil {
			t.Fatal(err)
		}
		e.Seed = seed
		if err := SmoothGrad.Run(context.Background(), &p, e); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, o := range e.Outputs {
			out = append(out, string(o.Data))
		}
		return out
	}
	forwards, backwards, other := at(1, 0, 1), at(1, 1, 0), at(2, 0, 1)
	if forwards[0] != backwards[1] || forwards[1] != backwards[0] {
		t.Error("maps depend on the order of images")
	}
	if forwards[0] == other[0] {
		t.Error("another seed gives the same map")
	}
}

// TestDeviation holds what noise is measured in.
func TestDeviation(t *testing.T) {
	p := Copies{Noise: 0.5, Scale: "range"}
	if d := p.deviation([]float32{-1, 0, 3}); d != 2 {
		t.Errorf("half of a range of 4 is %v", d)
	}
	p.Scale = "absolute"
	if d := p.deviation([]float32{-1, 0, 3}); d != 0.5 {
		t.Errorf("0.5 is %v", d)
	}
}

func TestTappedRefuses(t *testing.T) {
	none := tappedAt("final")
	none.Reduce = "none"
	nowhere := tappedAt("")
	target := tappedAt("final")
	target.Target = "predicted:best"
	small := tappedAt("final")
	small.Size = "layer"
	for want, p := range map[string]interface{ Validate() error }{
		"size: layer keeps":    SaliencyParams{Differentiated: plain(none)},
		"neither input":        GradCAMParams{GradientCAM{CAM: CAM{Tapped: nowhere}}},
		"neither predicted":    GuidedGradCAMParams{Tapped: target},
		"has the image's size": GuidedGradCAMParams{Tapped: small},
		"both ends of the path": IntegratedGradientsParams{Differentiated: plain(tapped()), Steps: 1,
			Rule: "trapezoid"},
		"makes its map at the i": AGIParams{Common: tappedAt("final").Common},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v doesn't say %q", err, want)
		}
	}
	kept := GuidedGradCAMParams{Tapped: none}
	if err := kept.Validate(); err != nil {
		t.Error(err)
	}
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	for layer, want := range map[string]string{"/nowhere": "no value of the model's graph",
		"/fc1/Gemm_output_0": "no places in the image", "logits": "no places"} {
		_, err := stagetest.Try(InputXGradient, &InputXGradientParams{plain(tappedAt(layer))}, in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("layer %s: %v", layer, err)
		}
	}
}
