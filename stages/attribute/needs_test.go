package attribute

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

func TestNeedsOf(t *testing.T) {
	backward := Needs{Model: true, Gradient: true, Layer: "input"}
	guided := Needs{Model: true, Gradient: true, Rectifiers: true, Layer: "input"}
	for _, tt := range []struct {
		s    stages.Stage
		want Needs
	}{
		{Constant, Needs{}}, {Random, Needs{}}, {External, Needs{}},
		{Occlusion, Needs{Model: true}}, {RISE, Needs{Model: true}},
		{Saliency, backward}, {InputXGradient, backward}, {IntegratedGradients, backward}, {SmoothGrad, backward},
		{GuidedBackprop, guided}, {Deconvolution, guided},
		{GradCAM, Needs{Model: true, Gradient: true, Layer: "final"}},
		{GuidedGradCAM, Needs{Model: true, Gradient: true, Rectifiers: true, Layer: "final"}},
	} {
		if d := cmp.Diff(tt.want, NeedsOf(&tt.s)); d != "" {
			t.Errorf("%s: %s", tt.s.Name, d)
		}
	}
}
