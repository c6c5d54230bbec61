package attribute

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

// unreduced returns the default parameters of gradient methods, channels kept.
func unreduced() Tapped {
	p := tapped()
	p.Reduce = "none"
	return p
}

// gradient32 is the tolerance of derivatives that official code computed in float32, relative to the largest.
const gradient32 = 2e-6

// TestOfficialGradients holds the methods that go back once against captum's.
func TestOfficialGradients(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			for _, tt := range []struct {
				key    string
				stage  stages.Stage
				params any
			}{
				{"saliency_abs", Saliency, &SaliencyParams{plain(unreduced()), true}},
				{"saliency_signed", Saliency, &SaliencyParams{plain(unreduced()), false}},
				{"ixg", InputXGradient, &InputXGradientParams{plain(unreduced())}},
				{"guided_backprop", GuidedBackprop, &GuidedBackpropParams{unreduced(), false}},
				{"deconv", Deconvolution, &DeconvolutionParams{unreduced()}},
			} {
				key := prefix + "_" + tt.key
				got := oneMap(t, tt.stage, tt.params, model, a["x"].Float32s(), []int{3, 32, 32},
					a[target].Int64s()[0])
				near(t, file+" "+key, got, a[key].Float32s(), gradient32)
			}
		}
	}
}

// TestOfficialIntegratedGradients holds integrated gradients against captum's, and what is left over against
// captum's too.
func TestOfficialIntegratedGradients(t *testing.T) {
	rules := map[string]string{
		"gausslegendre": "gauss-legendre", "riemann_trapezoid": "captum-trapezoid",
		"riemann_left": "left", "riemann_right": "right", "riemann_middle": "middle",
	}
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			for _, steps := range []int{20, 50} {
				for official, rule := range rules {
					key := fmt.Sprintf("%s_ig%d_%s", prefix, steps, official)
					want, ok := a[key]
					if !ok {
						continue
					}
					p := &IntegratedGradientsParams{plain(unreduced()), steps, rule, "zero"}
					r := stagetest.Run(t, IntegratedGradients, p,
						officialImage(model, a["x"].Float32s(), a[target].Int64s()[0]))
					near(t, file+" "+key, tensor(t, r.Payloads["maps"][0]), want.Float32s(), gradient32)
					if delta, ok := a[key+"_delta"]; ok {
						// A difference of sums of 3,072 float32 values, of which logits of a few units are
						// made.
						got, want := tensor(t, r.Payloads["completeness"][0])[0], delta.Float32s()[0]
						if !(math.Abs(float64(got-want)) <= 1e-5) {
							t.Errorf("%s %s: %v is left over, want %v", file, key, got, want)
						}
					}
				}
			}
		}
	}
}

// officialImage returns the input of an attribution stage for one image.
func officialImage(model stages.Data, x []float32, target int64) map[string][]stages.Data {
	return map[string][]stages.Data{
		"model":   {model},
		"images":  {stagetest.Items(nil, stages.NewTensor(x, 3, 32, 32).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{target}, 1).Encode())},
	}
}

func tensor(t *testing.T, payload []byte) []float32 {
	t.Helper()
	m, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return m.Float32s()
}

// TestOfficialPaths holds integrated gradients against two codes that average derivatives from end to end of
// the path.
func TestOfficialPaths(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "ig_family", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for key, steps := range map[string]int{"ig_mas_steps50_alpha1": 50, "ig_mas_steps20_alpha1": 20,
			"ig_pair_steps25_logit": 25} {
			p := &IntegratedGradientsParams{plain(unreduced()), steps, "linspace-mean", "zero"}
			got := oneMap(t, IntegratedGradients, p, model, a["x"].Float32s(), []int{3, 32, 32},
				a["target"].Int64s()[0])
			near(t, file+" "+key, got, a[key].Float32s(), gradient32)
		}
	}
	for _, file := range []string{"lig_smallcnn_img4", "lig_smallcnn_img5", "lig_gapcnn_img4",
		"lig_gapcnn_img5"} {
		a := read(t, "ig_family", file+".npz")
		model := modeltest.Official(t, file[len("lig_"):len(file)-len("_img4")], 0)
		p := &IntegratedGradientsParams{plain(unreduced()), 50, "linspace-mean", "zero"}
		got := oneMap(t, IntegratedGradients, p, model, a["x"].Float32s(), []int{3, 32, 32},
			a["target"].Int64s()[0])
		near(t, file, got, a["ig50"].Float32s(), gradient32)
	}
}

// TestOfficialSmoothGrad holds averages over noise against captum's, with captum's noise.
func TestOfficialSmoothGrad(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for key, mean := range map[string]string{"t_smoothgrad": "derivative",
			"t_smoothgrad_abs": "magnitude", "t_smoothgrad_sq": "square"} {
			e, err := stagetest.Env(&SmoothGrad, officialImage(model, a["x"].Float32s(),
				a["target"].Int64s()[0]))
			if err != nil {
				t.Fatal(err)
			}
			p := SmoothGradParams{Differentiated: plain(unreduced()), Copies: Copies{Samples: 10}, Mean: mean}
			if err := loaded(t.Context(), e, func(ctx context.Context, e *stages.Env, n *program.Net) error {
				return p.runNoise(ctx, e, n, captumNoise(a))
			}); err != nil {
				t.Fatal(err)
			}
			near(t, file+" "+key, tensor(t, e.Outputs[0].Data), a[key].Float32s(), gradient32)
		}
	}
}

// captumNoise draws the noise that captum drew.
func captumNoise(a map[string]npy.Array) draw {
	copies, std := a["smoothgrad_noise"].Float32s(), float32(a["smoothgrad_std"].Float64s()[0])
	return func(int, []float32) func([]float32) {
		k := 0
		return func(noise []float32) {
			for i := range noise {
				noise[i] = copies[k+i] * std
			}
			k += len(noise)
		}
	}
}

// conv3 and relu3 are the values of both official nets that class activation maps were made of.
const (
	conv3 = "/conv3/Conv_output_0"
	relu3 = "/relu3/Relu_output_0"
)

// cam32 is the tolerance of maps in which channels nearly cancel.
const cam32 = 1e-5

// TestOfficialGradCAM holds class activation maps, before they're enlarged and after, against captum's.
func TestOfficialGradCAM(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		at := tapped()
		at.Layer = conv3
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			in := officialImage(model, a["x"].Float32s(), a[target].Int64s()[0])
			for key, relu := range map[string]bool{"_layer_gradcam_relu": true, "_layer_gradcam_raw": false} {
				key := prefix + key
				want := a[key].Float64s()
				p := &GradCAMParams{GradientCAM{CAM: CAM{at, relu, "bilinear", joined()}}}
				got := oneMap(t, GradCAM, p, model, a["x"].Float32s(),
					[]int{3, 32, 32}, a[target].Int64s()[0])
				near(t, file+" "+key, got, singles(resized(want, 8, 8, 32, 32, "bilinear")), cam32)
			}
			for key, upsample := range map[string]string{"_guided_gradcam": "nearest",
				"_guided_gradcam_bilinear": "bilinear"} {
				p := GuidedGradCAMParams{Tapped: at, Upsample: upsample}
				p.Reduce = "none"
				got := tensor(t, stagetest.Run(t, GuidedGradCAM, &p, in).Payloads["maps"][0])
				near(t, file+" "+prefix+key, got, a[prefix+key].Float32s(), cam32)
			}
		}
	}
}
