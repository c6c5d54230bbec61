package attribute

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/relevance"
)

func TestNeedsOf(t *testing.T) {
	backward := Needs{Model: true, Gradient: true, Layer: "input"}
	guided := Needs{Model: true, Gradient: true, Rectifiers: true, Layer: "input"}
	for _, tt := range []struct {
		s    stages.Stage
		want Needs
	}{
		{Constant, Needs{}}, {Random, Needs{}}, {External, Needs{}},
		{Occlusion, Needs{Model: true, Layer: "input"}}, {RISE, Needs{Model: true, Layer: "input"}},
		{Saliency, backward}, {InputXGradient, backward}, {IntegratedGradients, backward}, {SmoothGrad, backward},
		{VarGrad, backward}, {LeftIG, backward}, {GuidedIG, backward}, {AGI, backward},
		{GuidedBackprop, guided}, {Deconvolution, guided},
		{GradCAM, Needs{Model: true, Gradient: true, Layer: "final"}},
		{GradCAMPlusPlus, Needs{Model: true, Gradient: true, Layer: "final"}},
		{HiResCAM, Needs{Model: true, Gradient: true, Layer: "final"}},
		{LayerCAM, Needs{Model: true, Gradient: true, Layer: "final"}},
		{AblationCAM, Needs{Model: true, Layer: "final"}}, {ScoreCAM, Needs{Model: true, Layer: "final"}},
		{GuidedGradCAM, Needs{Model: true, Gradient: true, Rectifiers: true, Layer: "final"}},
		{RawAttention, Needs{Model: true, Attention: true}},
		{AttentionRollout, Needs{Model: true, Attention: true}},
		{TransitionAttention, Needs{Model: true, Gradient: true, Layer: "input", Attention: true}},
		{TIBAV, Needs{Model: true, Gradient: true, Layer: "input", Attention: true, Rules: "tibav"}},
		{LRPComposite, Needs{Model: true, Gradient: true, Layer: "input", Rules: relevance.PlainLRP().Name}},
		{CLRP, Needs{Model: true, Gradient: true, Layer: "input", Rules: relevance.PlainLRP().Name, Others: true}},
		{CRAP, Needs{Model: true, Gradient: true, Layer: "input", Rules: relevance.RAP().Policy().Name, Others: true}},
		{DeepLIFT, Needs{Model: true, Gradient: true, Layer: "input", Rules: "rescale"}},
	} {
		if d := cmp.Diff(tt.want, NeedsOf(&tt.s, tt.s.NewParams())); d != "" {
			t.Errorf("%s: %s", tt.s.Name, d)
		}
	}
	halved := &LRPCompositeParams{Relevant: relevant()}
	halved.Gates, halved.Layer = string(relevance.GatesHalved), "middle"
	if d := cmp.Diff(Needs{Model: true, Gradient: true, Layer: "middle"}, NeedsOf(&LRPComposite, halved)); d != "" {
		t.Errorf("halved gates: %s", d)
	}
}
