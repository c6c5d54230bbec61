package attribute

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// Of the maps of testdata/paths.npz, made by paths.py, every keptPath-th value is kept.
const (
	keptPath = 37
	pathSide = 64
)

// pathImage returns a picture by the formula of paths.py.
func pathImage(number int) stages.Tensor {
	var out []uint8
	for c := range 3 {
		for i := range pathSide {
			for j := range pathSide {
				v := i*(2+c+number) + j*(3+2*c) + i*j/(9+number) + 40*number
				out = append(out, uint8(v%256))
			}
		}
	}
	return stages.NewTensor(out, 3, pathSide, pathSide)
}

// pathInput returns a net of the quickstart and the picture of a number, whose class 3 or 7 is explained.
func pathInput(t testing.TB, net string, number int) map[string][]stages.Data {
	t.Helper()
	return map[string][]stages.Data{
		"model": {modeltest.Model(t, model.ONNXParams{Preset: "half",
			Path: filepath.Join("..", "..", "experiments", "quickstart", net+".onnx")})},
		"images":  {stagetest.Items(nil, pathImage(number).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{int64(3 + 4*number)}, 1).Encode())},
	}
}

// pathBackground returns the pictures of numbers 2 to 6 as a background.
func pathBackground() stages.Data {
	b := stages.Tensor{DType: stages.U8, Shape: []int{5, 3, pathSide, pathSide}}
	for k := 2; k < 7; k++ {
		b.Raw = append(b.Raw, pathImage(k).Raw...)
	}
	return stagetest.Value(nil, b.Encode())
}

// path32 is the tolerance of maps that are added up of derivatives in float32, relative to the norm of those
// in double precision. Each method is held to it on one of the nets.
//
// The others are of maps that aren't continuous at a point of their path, where last digits decide which
// derivative a value has. ties is that of vgg at the flat image, where values tie in its max-pools: noise of
// 1e-12 on the points moves the maps of paths.py by 2e-2, and torch in single precision deviates from them as
// much as we do. near0 is that of a ReLU of resnet, close to 0: noise of 3e-7 moves a third of the maps of
// paths.py by 1.7e-4, and the others by 1e-5 at most. IDG gives the flat image little weight, that of the
// authors none.
const (
	path32 = 3e-6
	ties   = 4e-3
	near0  = 4e-4
)

// TestPathsOfPeers holds the methods along paths against captum, shap, saliency and their definitions in
// double precision.
func TestPathsOfPeers(t *testing.T) {
	want, err := stagetest.Arrays(filepath.Join("testdata", "paths.npz"))
	if err != nil {
		t.Fatal(err)
	}
	probability := unreduced()
	probability.Output = "probability"
	blur := func(steps int, spacing string) *BlurIGParams {
		return &BlurIGParams{unreduced().Common, Balanced{}, steps, 50, spacing, 0.01}
	}
	methods := map[string]struct {
		stage     stages.Stage
		params    any
		tolerance map[string]float64 // by net
	}{
		"idgi": {IDGI, &IDGIParams{plain(unreduced()), 20, "zero"},
			map[string]float64{"vgg": ties}},
		"idgi_probability": {IDGI, &IDGIParams{plain(probability), 20, "zero"},
			map[string]float64{"vgg": ties}},
		"idgi_baseline": {IDGI, &IDGIParams{plain(unreduced()), 20, "zero"},
			map[string]float64{"resnet": near0}},
		"idg_paper": {IDG, &IDGParams{plain(unreduced()), "paper", 20, "zero"},
			map[string]float64{"vgg": near0}},
		"idg_official":     {IDG, &IDGParams{plain(unreduced()), "official", 20, "zero"}, nil},
		"blur_ig":          {BlurIG, blur(20, "linear"), map[string]float64{"resnet": near0}},
		"blur_ig_defaults": {BlurIG, blur(100, "linear"), map[string]float64{"vgg": 1e-5, "resnet": near0}},
		"blur_ig_sqrt":     {BlurIG, blur(20, "sqrt"), nil},
	}
	for _, net := range []string{"vgg", "resnet"} {
		for number := range 2 {
			in := pathInput(t, net, number)
			hold := func(key string, got []float32, tolerance float64) {
				t.Helper()
				key = fmt.Sprintf("%s%d_%s", net, number, key)
				some, numbers := []float32{}, want[key].Float64s()
				for k := range numbers {
					some = append(some, got[k*keptPath])
				}
				apart(t, key, some, singles(numbers), tolerance)
			}
			for key, m := range methods {
				if key == "idgi_baseline" {
					in["baselines"] = []stages.Data{stagetest.Items(nil, pathImage(7).Encode())}
				}
				r := stagetest.Run(t, m.stage, m.params, in)
				delete(in, "baselines")
				hold(key, tensor(t, r.Payloads["maps"][0]), cmp.Or(m.tolerance[net], path32))
			}
			got := expectedGradients(t, in, peersDraws(23, 5))
			hold("gradient_shap", got, path32)
			hold("gradient_explainer", got, path32)
		}
	}
}

// peersDraws are the draws that paths.py gives to captum and shap.
func peersDraws(n, images int) (draws []pathDraw) {
	for k := range n {
		_, t := math.Modf(float64(k)*0.618034 + 0.25)
		draws = append(draws, pathDraw{k * 5 % images, t})
	}
	return draws
}

// expectedGradients returns the map of given draws.
func expectedGradients(t *testing.T, in map[string][]stages.Data, draws []pathDraw) (values []float32) {
	t.Helper()
	in["background"] = []stages.Data{pathBackground()}
	defer delete(in, "background")
	e, err := stagetest.Env(&ExpectedGradients, in)
	if err != nil {
		t.Fatal(err)
	}
	p := ExpectedGradientsParams{Common: unreduced().Common, Samples: len(draws)}
	if err := loaded(t.Context(), e, func(ctx context.Context, e *stages.Env, n *program.Net) error {
		x, err := p.expectation(ctx, e, n)
		if err != nil {
			return err
		}
		target, err := p.target(e, 0, n)
		if err != nil {
			return err
		}
		to := make([]float32, n.Size())
		if err := image(e, 0, n, to); err != nil {
			return err
		}
		map64, err := x.attribution(ctx, target, to, draws)
		values = singles(map64)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return values
}
