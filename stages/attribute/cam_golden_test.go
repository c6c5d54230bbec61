package attribute

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// officialCAMs are the maps of the code of Gildenblat et al., and the layers of the official nets that they
// were made of.
func officialCAMs() map[string]string {
	return map[string]string{"smallcnn_relu3_img0": relu3, "smallcnn_conv3_img2": conv3,
		"gapcnn_relu3_img1": relu3}
}

// TestOfficialCAM holds what arrives at a layer, and the maps that are made of it, against the code of
// Gildenblat et al.
func TestOfficialCAM(t *testing.T) {
	plus := GradCAMPlusPlusParams{Variant: "official-gildenblat"}
	for file, layer := range officialCAMs() {
		a := read(t, "cam", file+".npz")
		model := modeltest.Official(t, file[:strings.Index(file, "_")], 0)
		p := tappedAt(layer)
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			e, err := stagetest.Env(&GradCAM, officialImage(model, a["x"].Float32s(), a[target].Int64s()[0]))
			if err != nil {
				t.Fatal(err)
			}
			n, err := program.Load(e)
			if err != nil {
				t.Fatal(err)
			}
			passes, err := plain(p).backwardPasses(t.Context(), e, n)
			if err != nil {
				t.Fatal(err)
			}
			err = runBackward(t.Context(), e, n, []passUser{{passes, func(_ int, d []passResult) error {
				near(t, file+" acts", d[0].Value, a["acts"].Float32s(), gradient32)
				near(t, file+" grads_"+prefix, d[0].Gradient, a["grads_"+prefix].Float32s(), gradient32)
				for method, rule := range map[string]weightRule{
					"gradcam": meanGradient, "gradcampp": plus.weigh, "hirescam": byPlace,
					"layercam": byPositive,
				} {
					raw, at, err := p.cam(e, 0, &program.Net{}, d[0], rule, false)
					if err != nil {
						return err
					}
					key := prefix + "_" + method
					near(t, file+" "+key+"_raw", singles(raw), a[key+"_raw"].Float32s(), cam32)
					positive, _, _ := p.cam(e, 0, &program.Net{}, d[0], rule, true)
					final := rescaled(resized(rescaled(positive), at.height, at.width, 32, 32, "bilinear"))
					near(t, file+" "+key, singles(final), a[key].Float32s(), cam32)
				}
				return nil
			}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOfficialChannelCAM holds the maps of methods that try one channel after the other against the code of
// Gildenblat et al.
func TestOfficialChannelCAM(t *testing.T) {
	for file, layer := range officialCAMs() {
		a := read(t, "cam", file+".npz")
		model := modeltest.Official(t, file[:strings.Index(file, "_")], 0)
		at := CAM{tappedAt(layer), true, "bilinear", joined()}
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			for method, m := range map[string]struct {
				stage  stages.Stage
				params any
			}{
				"ablationcam": {AblationCAM, &AblationCAMParams{at, "official-gildenblat"}},
				"scorecam":    {ScoreCAM, &ScoreCAMParams{at, "official-gildenblat"}},
			} {
				// Enlarging commutes with stretching.
				got := oneMap(t, m.stage, m.params, model, a["x"].Float32s(), []int{3, 32, 32},
					a[target].Int64s()[0])
				key := prefix + "_" + method
				near(t, file+" "+key, singles(rescaled(doubles(got))), a[key].Float32s(), 2e-5)
			}
		}
	}
}

// TestOfficialGridCAM holds class activation maps against the code of Rao et al. in its settings, at the
// input, the middle and the final layer.
func TestOfficialGridCAM(t *testing.T) {
	forEachGrid(t, func(g grid) {
		at := CAM{tappedAt(g.layer), true, "bilinear", joined()}
		for method, m := range map[string]struct {
			stage  stages.Stage
			params any
		}{
			"GradCam": {GradCAM, &GradCAMParams{GradientCAM{CAM: at}}},
			"GradCamPlusPlus": {GradCAMPlusPlus, &GradCAMPlusPlusParams{GradientCAM{CAM: at},
				"official-rao"}},
			"LayerCam":    {LayerCAM, &LayerCAMParams{GradientCAM{CAM: at}}},
			"AblationCam": {AblationCAM, &AblationCAMParams{at, "paper"}},
			"ScoreCam":    {ScoreCAM, &ScoreCAMParams{at, "official-rao"}},
		} {
			// That code asks the first head, whichever is explained.
			if method == "ScoreCam" && g.head != 0 {
				continue
			}
			tolerance := cam32
			if method == "AblationCam" {
				tolerance = official32 // of differences between logits, here divided by a small one
			}
			if method == "AblationCam" && g.net == "smallcnn" && g.setting == "DiFull" && g.head == 3 {
				tolerance = 2e-4 // the explained logit is -0.02, of logits up to 5.8
			}
			if method == "GradCamPlusPlus" && g.name == "Input" {
				// Denominators that nearly cancel multiply what float32 rounds off derivatives.
				tolerance = 1e-3
			}
			g.compare(t, method, m.stage, m.params, tolerance)
		}
	})
}

// TestAblationIsALoop holds the weights against asking for one image at a time, with each channel replaced in
// a program of its own.
func TestAblationIsALoop(t *testing.T) {
	for _, variant := range []string{"paper", "official-gildenblat"} {
		ablationLoop(t, "smallcnn", "smallcnn_io", variant)
		ablationLoop(t, "timm_vit_op17", "timm_vit_io", variant)
	}
}

func ablationLoop(t *testing.T, net, io, variant string) {
	t.Helper()
	in := officialInput(t, net, io, "unit")
	e, err := stagetest.Env(&AblationCAM, in)
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	p := AblationCAMParams{defaultCAM(), variant}
	err = p.values(ctx, e, n, func(at layerValue) error {
		got, err := p.channelWeights(ctx, e, n, at)
		if err != nil {
			return err
		}
		slope, err := n.Slope(ctx, e.Slot, lower.Question{Layer: at.layer, Rules: relevance.Derivative()},
			1)
		if err != nil {
			return err
		}
		answer := func(v []float32) float64 {
			slope.Set(0, at.target, at.image)
			copy(slope.Value(0), v)
			if err := slope.Run(ctx); err != nil {
				t.Fatal(err)
			}
			return float64(slope.Row(0)[at.target.Class])
		}
		all, instead := answer(at.values), float32(0)
		if least := slices.Min(at.values); variant != "paper" && least < 0 {
			instead = least - 1e7
		}
		for c := range got {
			without := append([]float32(nil), at.values...)
			for k := range without {
				channel := k / at.planes.pixels()
				if net != "smallcnn" {
					channel = k % at.planes.channels
				}
				if channel == c {
					without[k] = instead
				}
			}
			want := (all - answer(without)) / all
			if !(math.Abs(got[c]-want) <= 1e-5) {
				return fmt.Errorf("channel %d of item %d counts %v, want %v", c, at.item, got[c], want)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s, %s: %v", net, variant, err)
	}
}

// TestHiddenTokens holds occlusion at tokens against setting each place's token to zero, one image at a time,
// in a program of its own. The class token always stays.
func TestHiddenTokens(t *testing.T) {
	in := officialInput(t, "timm_vit_op17", "timm_vit_io", "unit")
	p := &OcclusionParams{tappedAt("final"), "paper", picture.Square(1), picture.Square(1), "zero"}
	got := mapsOf(t, Occlusion, p, in)
	e, err := stagetest.Env(&Occlusion, in)
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	err = p.values(ctx, e, n, func(at layerValue) error {
		slope, err := n.Slope(ctx, e.Slot, lower.Question{Layer: at.layer, Rules: relevance.Derivative()},
			1)
		if err != nil {
			return err
		}
		slope.Set(0, at.target, at.image)
		answer := func(token int) float64 {
			v := slope.Value(0)
			copy(v, at.values)
			if token >= 0 {
				clear(v[token*at.planes.channels : (token+1)*at.planes.channels])
			}
			if err := slope.Run(ctx); err != nil {
				t.Fatal(err)
			}
			return float64(slope.Row(0)[at.target.Class])
		}
		pixels := at.planes.pixels()
		others := len(at.values)/at.planes.channels - pixels
		if others != 1 {
			t.Fatalf("%d tokens have no place", others)
		}
		falls := make([]float64, pixels)
		for k := range falls {
			falls[k] = answer(-1) - answer(others+k)
		}
		want := resized(falls, at.planes.height, at.planes.width, n.Height, n.Width, "bilinear")
		near(t, fmt.Sprintf("item %d", at.item), singles(got[at.item]), singles(want), 1e-5)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlusPlusDivides holds what becomes of denominators of zero.
func TestPlusPlusDivides(t *testing.T) {
	// 2g² + g³·Σa is 0 where g is −2/Σa, that is 0.5 here, and where g is 0.
	value, gradient := []float64{-1, -3}, []float64{0.5, 1}
	for variant, want := range map[string]float64{
		"paper":               1 / (2 - 4.0),
		"official-rao":        (0.25*0.5 + 1/(2-4.0)) * math.E,
		"official-gildenblat": 0.25/1e-6*0.5 + 1/(2-4.0+1e-6),
	} {
		weights := make([]float64, 2)
		GradCAMPlusPlusParams{Variant: variant}.weigh(value, gradient, weights, 1)
		if !(math.Abs(weights[0]-want) <= 1e-9*math.Abs(want)) || weights[0] != weights[1] {
			t.Errorf("%s: weights %v, want %v", variant, weights, want)
		}
	}
}

// TestAblationOfNothing checks that a map whose weights are shares of 0 is undefined, and that its values are
// counted.
func TestAblationOfNothing(t *testing.T) {
	m, err := onnx.ReadFile(modeltest.OfficialPath(t, "gapcnn"))
	if err != nil {
		t.Fatal(err)
	}
	last := m.Outputs()[0].Name
	m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, onnx.FloatTensor("much", []float32{1000}))
	m.Proto.Graph.Node = append(m.Proto.Graph.Node,
		onnx.NewNode("less", "Sub", []string{last, "much"}, []string{"less"}),
		onnx.NewNode("nothing", "Relu", []string{"less"}, []string{"nothing"}))
	m.SetOutputs(onnx.Value{Name: "nothing", Elem: onnxpb.TensorProto_FLOAT})
	x := make([]float32, 3*32*32)
	fill(x, 0.5)
	net := modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Kind: "logits"})
	r := stagetest.Run(t, AblationCAM, AblationCAM.NewParams(), officialImage(net, x, 3))
	for k, v := range tensor(t, r.Payloads["maps"][0]) {
		if !math.IsNaN(float64(v)) {
			t.Fatalf("pixel %d is %v", k, v)
		}
	}
	if len(r.Warnings) != 1 ||
		!strings.Contains(r.Warnings[0], "1024 of 1024 values of its map are not numbers") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// TestScoreCAMOfConstants holds what a channel without places shows.
func TestScoreCAMOfConstants(t *testing.T) {
	at := planes{[]float64{3, 3, 3, 3}, 1, 2, 2}
	mask := make([]float32, 16)
	for variant, want := range map[string]float32{"paper": 0, "official-gildenblat": 0,
		"official-rao": float32(math.NaN())} {
		ScoreCAMParams{Variant: variant}.show(at, 0, mask, 4, 4)
		for _, v := range mask {
			if v != want && (v == v || want == want) {
				t.Errorf("%s: %v, want %v", variant, v, want)
			}
		}
	}
	shares := []float64{1000, 1000 + math.Log(3)}
	if softmax(shares); !(math.Abs(shares[0]-0.25) <= 1e-12) || !(math.Abs(shares[1]-0.75) <= 1e-12) {
		t.Errorf("shares %v", shares)
	}
}
