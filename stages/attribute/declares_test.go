package attribute

import (
	"fmt"
	"testing"

	"github.com/runexp/runexp/stages"
)

// What methods declare of their maps: metrics read it as the parameters map, output and reference. fmt writes
// a map in the order of its keys.
func TestDeclares(t *testing.T) {
	const gradient, contribution = "map[map:gradient output:logit]", "map[map:contribution output:logit]"
	compared := func(reference string) string {
		return "map[map:contribution output:logit reference:" + reference + "]"
	}
	reduce := func(c *Common, how string) { c.Reduce = "abs-sum"; c.Output = how }
	for _, tc := range []struct {
		of     stages.Stage
		change func(params any)
		wired  bool // the port baselines
		want   string
	}{
		{of: Saliency, want: "map[]"}, // magnitudes
		{of: Saliency, change: func(p any) { p.(*SaliencyParams).Abs = false }, want: gradient},
		{of: Saliency, change: func(p any) {
			p.(*SaliencyParams).Abs = false
			p.(*SaliencyParams).Layer = "final"
		}, want: "map[]"},
		{of: GuidedBackprop, want: gradient},
		{of: Deconvolution, want: gradient},
		{of: SmoothGrad, want: gradient},
		{of: SmoothGrad, change: func(p any) { p.(*SmoothGradParams).Mean = "square" }, want: "map[]"},
		{of: InputXGradient, want: compared("zero")},
		{of: InputXGradient, change: func(p any) { p.(*InputXGradientParams).Reduce = "none" },
			want: compared("zero")},
		{of: InputXGradient, change: func(p any) { reduce(&p.(*InputXGradientParams).Common, "logit") },
			want: "map[]"},
		{of: IntegratedGradients, want: compared("zero")},
		{of: IntegratedGradients, wired: true, want: compared("images")},
		{of: DeepLIFT, change: func(p any) { p.(*DeepLIFTParams).Baseline = "black" },
			want: compared("black")},
		{of: GuidedIG, want: "map[map:contribution output:probability reference:zero]"},
		{of: LeftIG, want: contribution}, // from the baseline to where the output saturates
		{of: AGI, want: "map[map:contribution output:probability]"},
		{of: Occlusion, want: "map[]"}, // each pixel has its window's fall
		{of: Occlusion, change: func(p any) { p.(*OcclusionParams).Variant = "official" },
			want: compared("zero")},
		{of: LRPEpsilon, want: contribution},
		{of: LRPComposite, want: contribution},
		{of: LRPZPlus, change: func(p any) { p.(*LRPZPlusParams).Start = "one-hot" }, want: "map[]"},
		{of: CLRP, want: "map[]"},               // of a class against the others
		{of: PartitionSHAP, want: contribution}, // from a blurred image
		{of: PartitionSHAP, change: func(p any) { p.(*PartitionSHAPParams).Substrate = "black" },
			want: compared("black")},
		{of: KernelSHAP, want: "map[]"}, // each pixel has its unit's
		{of: KernelSHAP, change: func(p any) { p.(*KernelSHAPParams).Share = true }, want: compared("zero")},
		{of: ShapleySampling, change: func(p any) { p.(*ShapleySamplingParams).Share = true },
			want: compared("zero")},
		{of: FeatureAblation, change: func(p any) { p.(*FeatureAblationParams).Share = true },
			want: contribution}, // which doesn't sum
		{of: LIME, want: "map[]"},
		{of: LIME, change: func(p any) { p.(*LIMEParams).Share = true },
			want: "map[map:contribution output:probability]"},
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
		in["subsets"] = stages.Declared{"reference": "zero"}
		if got := fmt.Sprint(map[string]string(tc.of.Declares(p, in))); got != tc.want {
			t.Errorf("%s with %+v declares %s, want %s", tc.of.Name, p, got, tc.want)
		}
	}
	p := KernelSHAP.NewParams().(*KernelSHAPParams)
	p.Share = true
	for reference, want := range map[string]string{"black": compared("black"), "": contribution} {
		in := map[string]stages.Declared{"subsets": {"reference": reference}} // of the stage wired there
		if got := fmt.Sprint(map[string]string(KernelSHAP.Declares(p, in))); got != want {
			t.Errorf("of subsets with the substrate %q: %s, want %s", reference, got, want)
		}
	}
	for _, s := range []stages.Stage{GradCAM, HiResCAM, VarGrad, RISE, AbsLRP, CRAP, TIBAV, Random,
		Constant} {
		if s.Declares != nil {
			t.Errorf("%s declares something", s.Name)
		}
	}
}
