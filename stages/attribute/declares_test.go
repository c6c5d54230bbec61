package attribute

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/runexp/runexp/stages"
)

// What methods declare of their maps: metrics read it as the parameters map, output and reference. fmt writes
// a map in the order of its keys.
func TestDeclares(t *testing.T) {
	const gradient = "map[map:gradient output:logit target:predicted]"
	const contribution = "map[map:contribution output:logit target:predicted]"
	const none = "map[target:predicted]"
	compared := func(reference string) string {
		return "map[map:contribution output:logit reference:" + reference + " target:predicted]"
	}
	reduce := func(c *Common, how string) { c.Reduce = "abs-sum"; c.Output = how }
	for _, tc := range []struct {
		of     stages.Stage
		change func(params any)
		wired  bool // the port baselines
		want   string
	}{
		{of: Saliency, want: none}, // magnitudes
		{of: Saliency, change: func(p any) { p.(*SaliencyParams).Abs = false }, want: gradient},
		{of: Saliency, change: func(p any) {
			p.(*SaliencyParams).Abs = false
			p.(*SaliencyParams).Layer = "final"
		}, want: none},
		{of: GuidedBackprop, want: gradient},
		{of: Deconvolution, want: gradient},
		{of: SmoothGrad, want: gradient},
		{of: SmoothGrad, change: func(p any) { p.(*SmoothGradParams).Mean = "square" }, want: none},
		{of: InputXGradient, want: compared("zero")},
		{of: InputXGradient, change: func(p any) { p.(*InputXGradientParams).Reduce = "none" },
			want: compared("zero")},
		{of: InputXGradient, change: func(p any) { reduce(&p.(*InputXGradientParams).Common, "logit") },
			want: none},
		{of: IntegratedGradients, want: compared("zero")},
		{of: IntegratedGradients, wired: true, want: compared("images")},
		{of: DeepLIFT, change: func(p any) { p.(*DeepLIFTParams).Baseline = "black" },
			want: compared("black")},
		{of: GuidedIG, want: "map[map:contribution output:probability reference:zero target:predicted]"},
		{of: LeftIG, want: contribution}, // from the baseline to where the output saturates
		{of: AGI, want: "map[map:contribution output:probability target:predicted]"},
		{of: Occlusion, want: none}, // each pixel has its window's fall
		{of: Occlusion, change: func(p any) { p.(*OcclusionParams).Variant = "official" },
			want: compared("zero")},
		{of: LRPEpsilon, want: contribution},
		{of: LRPComposite, want: contribution},
		{of: LRPZPlus, change: func(p any) { p.(*LRPZPlusParams).Start = "one-hot" }, want: none},
		{of: CLRP, want: none},                  // of a class against the others
		{of: PartitionSHAP, want: contribution}, // from a blurred image
		{of: PartitionSHAP, change: func(p any) { p.(*PartitionSHAPParams).Substrate = "black" },
			want: compared("black")},
		{of: KernelSHAP, want: none}, // each pixel has its unit's
		{of: KernelSHAP, change: func(p any) { p.(*KernelSHAPParams).Share = true }, want: compared("zero")},
		{of: ShapleySampling, change: func(p any) { p.(*ShapleySamplingParams).Share = true },
			want: compared("zero")},
		{of: FeatureAblation, change: func(p any) { p.(*FeatureAblationParams).Share = true },
			want: contribution}, // which doesn't sum
		{of: LIME, want: none},
		{of: LIME, change: func(p any) { p.(*LIMEParams).Share = true },
			want: "map[map:contribution output:probability target:predicted]"},
		{of: RAP, want: contribution},
	} {
		p := tc.of.NewParams()
		if tc.change != nil {
			tc.change(p)
		}
		in := map[string]stages.Declared{"model": nil, "images": nil}
		if tc.wired {
			in["baselines"] = nil
		}
		in["subsets"] = stages.Declared{"reference": "zero", "target": "predicted"}
		if got := fmt.Sprint(map[string]string(tc.of.Declares(p, in))); got != tc.want {
			t.Errorf("%s with %+v declares %s, want %s", tc.of.Name, p, got, tc.want)
		}
	}
	p := KernelSHAP.NewParams().(*KernelSHAPParams)
	p.Share = true
	for reference, want := range map[string]string{"black": compared("black"), "": contribution} {
		// of the stage wired there
		in := map[string]stages.Declared{"subsets": {"reference": reference, "target": "predicted"}}
		if got := fmt.Sprint(map[string]string(KernelSHAP.Declares(p, in))); got != want {
			t.Errorf("of subsets with the substrate %q: %s, want %s", reference, got, want)
		}
	}
	for _, s := range []stages.Stage{GradCAM, HiResCAM, VarGrad, RISE, AbsLRP, CRAP, TIBAV} {
		if got := fmt.Sprint(map[string]string(s.Declares(s.NewParams(), nil))); got != none {
			t.Errorf("%s declares %s", s.Name, got)
		}
	}
	for _, s := range []stages.Stage{Random, Constant} {
		if s.Declares != nil {
			t.Errorf("%s declares something", s.Name)
		}
	}
}

// The class that a method declares is that of its parameter, unless it explains those on the port targets.
func TestDeclaresTheTarget(t *testing.T) {
	for _, tc := range []struct {
		target string
		wired  bool // the port targets
		want   string
	}{
		{"predicted", false, "predicted"}, {"predicted", true, ""}, {"label", false, "label"},
		{"label", true, "label"}, {"3", false, "3"}, {"predicted:2", false, "predicted:2"},
	} {
		in, subset := map[string]stages.Declared{}, stages.Declared{"target": tc.target}
		if tc.wired {
			in["targets"], subset = nil, nil
		}
		for _, s := range []stages.Stage{GradCAM, Saliency, LRPEpsilon, PartitionSHAP} {
			p := s.NewParams()
			reflect.ValueOf(p).Elem().FieldByName("Target").SetString(tc.target)
			if got := s.Declares(p, in)["target"]; got != tc.want {
				t.Errorf("%s, target: %s, targets wired %t: declares %q", s.Name, tc.target, tc.wired, got)
			}
		}
		in["subsets"] = subset
		if got := LIME.Declares(LIME.NewParams(), in)["target"]; got != subset["target"] {
			t.Errorf("LIME of subsets of target %q declares %q", subset["target"], got)
		}
	}
}
