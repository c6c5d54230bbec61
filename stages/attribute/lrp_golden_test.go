package attribute

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// relevance32 is the tolerance, relative in norm, of relevance that official code computed in float32:
// divisions by what nearly cancels lose digits. contrast32 is that of relevance of which much cancels by
// itself. captum's form of the z⁺-rule divides by sums of any sign, some of them near 0: in float32 PyTorch
// itself is up to 3e-5 off its value in float64.
const (
	relevance32 = 2e-5
	contrast32  = 5e-5
	captum32    = 2e-4
)

// closeTo fails unless got is want up to a tolerance relative to want's norm.
func closeTo(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	var off, all float64
	for i, v := range want {
		d := float64(got[i]) - float64(v)
		off += d * d
		all += float64(v) * float64(v)
	}
	if e := math.Sqrt(off / all); !(e <= tolerance) {
		t.Errorf("%s: relative error %.2g", what, e)
	} else {
		t.Logf("%s: relative error %.2g", what, e)
	}
}

// zennit returns the parameters that all methods share, as Zennit has them.
func zennit(start string) Relevant {
	p := relevant()
	p.Reduce, p.Start = "none", start
	return p
}

func withoutBias(p Relevant) Relevant {
	p.Bias = false
	return p
}

// zennitRules returns the stage and parameters of the rules in zennit_lrp.
func zennitRules(start string) map[string]struct {
	stage  stages.Stage
	params any
} {
	r, same := zennit(start), FirstLayer{"same"}
	type method = struct {
		stage  stages.Stage
		params any
	}
	return map[string]method{
		"eps1e6":       {LRPEpsilon, &LRPEpsilonParams{r, same, 1e-6}},
		"eps1e9":       {LRPEpsilon, &LRPEpsilonParams{r, same, 1e-9}},
		"eps0p25":      {LRPEpsilon, &LRPEpsilonParams{r, same, 0.25}},
		"zplus":        {LRPZPlus, &LRPZPlusParams{r, same, "paper"}},
		"zplus_nobias": {LRPZPlus, &LRPZPlusParams{withoutBias(r), same, "paper"}},
		"a1b0":         {LRPAlphaBeta, &LRPAlphaBetaParams{r, same, 1, 0}},
		"a2b1":         {LRPAlphaBeta, &LRPAlphaBetaParams{r, same, 2, 1}},
		"a2b1_nobias":  {LRPAlphaBeta, &LRPAlphaBetaParams{withoutBias(r), same, 2, 1}},
		"gamma0p25":    {LRPGamma, &LRPGammaParams{r, same, 0.25}},
	}
}

var zennitFiles = []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"}

// imagenetModel returns an official net with ImageNet's normalisation, and pixels that it makes x of.
func imagenetModel(t *testing.T, name string, x []float32) (stages.Data, []float32) {
	m := modeltest.Model(t, model.ONNXParams{Path: modeltest.OfficialPath(t, name), Preset: "imagenet"})
	mean, std := []float32{0.485, 0.456, 0.406}, []float32{0.229, 0.224, 0.225}
	pixels := make([]float32, len(x))
	for i, v := range x {
		c := i / (32 * 32)
		pixels[i] = v*std[c] + mean[c]
	}
	return m, pixels
}

// TestOfficialLRP holds rules and composites against Zennit's, from one class, its logit, and all classes but
// one.
func TestOfficialLRP(t *testing.T) {
	for _, file := range zennitFiles {
		a := read(t, "zennit_lrp", file+".npz")
		net := file[:len(file)-len("_img0")]
		m, x, target := modeltest.Official(t, net, 0), a["x"].Float32s(), a["target"].Int64s()[0]
		seen := map[string]bool{}
		run := func(key string, s stages.Stage, params any, tolerance float64) {
			t.Helper()
			if _, ok := a[key]; !ok {
				t.Fatalf("%s has no %s", file, key)
			}
			seen[key] = true
			closeTo(t, file+" "+key, oneMap(t, s, params, m, x, []int{3, 32, 32}, target), a[key].Float32s(),
				tolerance)
		}
		for rule, r := range zennitRules("one-hot") {
			run(rule+"__onehot", r.stage, r.params, relevance32)
		}
		for rule, r := range zennitRules("logit") {
			run(rule+"__logit", r.stage, r.params, relevance32)
		}
		r, same := zennit("one-hot"), FirstLayer{"same"}
		for preset, key := range map[string]string{
			"epsilon-plus": "EpsilonPlus", "epsilon-plus-flat": "EpsilonPlusFlat",
			"epsilon-alpha2-beta1": "EpsilonAlpha2Beta1",
		} {
			run("comp_"+key+"__onehot", LRPComposite, &LRPCompositeParams{r, preset, 1e-6, 0.25}, relevance32)
		}
		run("comp_GuidedBackprop__onehot", GuidedBackprop, &GuidedBackpropParams{unreduced(), false},
			relevance32)
		run("comp_DeconvNet__onehot", Deconvolution, &DeconvolutionParams{unreduced()}, relevance32)
		for rule, p := range map[string]CLRPParams{
			"eps1e6": {r, NamedRules{same, "epsilon"}, "", false}, "a1b0": {r, NamedRules{same, "z-plus"}, "",
				false}, "zplus_nobias": {withoutBias(r), NamedRules{same, "z-plus"}, "", false},
		} {
			for key, variant := range map[string]string{"contrast_1_minus_invN": "abslrp",
				"contrast_1_minus_invNm1": "paper"} {
				p := p
				p.Variant = variant
				run(rule+"__"+key, CLRP, &p, contrast32)
			}
			// One class minus the others is the contrast, as the rules are linear.
			p := p
			p.Variant = "paper"
			got := oneMap(t, CLRP, &p, m, x, []int{3, 32, 32}, target)
			one, others := a[rule+"__onehot"].Float32s(), a[rule+"__others_uniform"].Float32s()
			seen[rule+"__others_uniform"] = true
			want := make([]float32, len(one))
			for i := range want {
				want[i] = one[i] - others[i]
			}
			closeTo(t, file+" "+rule+" contrast", got, want, contrast32)
		}
		// The zB-rule knows the pixels of ImageNet.
		m, x = imagenetModel(t, net, x)
		run("comp_EpsilonGammaBox__onehot", LRPComposite, &LRPCompositeParams{r, "epsilon-gamma-box", 1e-6,
			0.25}, relevance32)
		seen["x"], seen["logits"], seen["target"], seen["zbox_low"], seen["zbox_high"] =
			true, true, true, true, true
		for key := range a {
			if !seen[key] && key[:2] != "R_" {
				t.Errorf("%s: nothing looks at %s", file, key)
			}
		}
	}
}

// TestOfficialCaptumLRP holds the ε-rule, and captum's form of the z⁺-rule, against captum's.
func TestOfficialCaptumLRP(t *testing.T) {
	for _, file := range zennitFiles {
		a := read(t, "captum", file+".npz")
		m := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		r, same := zennit("logit"), FirstLayer{"same"}
		r.Stabiliser = 1e-9
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			for key, method := range map[string]struct {
				stage  stages.Stage
				params any
			}{
				"lrp_eps1e9":      {LRPEpsilon, &LRPEpsilonParams{r, same, 1e-9}},
				"lrp_eps0p25":     {LRPEpsilon, &LRPEpsilonParams{r, same, 0.25}},
				"lrp_captum_a1b0": {LRPZPlus, &LRPZPlusParams{r, same, "captum"}},
			} {
				key := prefix + "_" + key
				result := stagetest.Run(t, method.stage, method.params,
					officialImage(m, a["x"].Float32s(), a[target].Int64s()[0]))
				tolerance := relevance32
				if method.stage.Name == LRPZPlus.Name {
					tolerance = captum32
				}
				closeTo(t, file+" "+key, tensor(t, result.Payloads["maps"][0]), a[key].Float32s(), tolerance)
				if delta, ok := a[key+"_delta"]; ok {
					logit := float64(a["logits"].Float32s()[a[target].Int64s()[0]])
					got := (1 - scalar(t, result.Payloads["conservation"][0])) * logit
					if want := float64(delta.Float32s()[0]); !(math.Abs(got-want) <= 1e-4*math.Max(1,
						math.Abs(logit))) {
						t.Errorf("%s %s: %v is lost, want %v", file, key, got, want)
					}
				}
			}
		}
	}
}

// TestOfficialRAPsLRP holds the αβ-rule against the code of RAP, which has the zB-rule at the image.
func TestOfficialRAPsLRP(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2"} {
		a := read(t, "rap", file+".npz")
		m := modeltest.Official(t, "smallcnn", 0)
		first := FirstLayer{"image-box"}
		for key, p := range map[string]LRPAlphaBetaParams{
			"lrp_a1_logit":    {withoutBias(zennit("logit")), first, 1, 0},
			"lrp_a1_onehot":   {withoutBias(zennit("one-hot")), first, 1, 0},
			"lrp_a2b1_onehot": {withoutBias(zennit("one-hot")), first, 2, 1},
		} {
			p.Stabiliser = 0
			got := oneMap(t, LRPAlphaBeta, &p, m, a["x"].Float32s(), []int{3, 32, 32},
				a["target"].Int64s()[0])
			closeTo(t, file+" "+key, got, a[key].Float32s(), relevance32)
		}
	}
}

func scalar(t *testing.T, payload []byte) float64 {
	t.Helper()
	m, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return m.Float64s()[0]
}
