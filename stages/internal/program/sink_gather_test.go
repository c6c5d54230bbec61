package program_test

import (
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestSinkGather holds that what behind the last attention of a transformer only the class token is computed
// of changes neither answers nor derivatives by a bit, nor does a layer that is such a value. Package lower
// tests which values these are.
func TestSinkGather(t *testing.T) {
	all := modeltest.Nets(t, false)
	for _, name := range []string{"vit", "timm_vit_op13", "timm_vit_op17", "resnet"} {
		n := net(t, all[name])
		slot := threaded{1, stagetest.NewSlot()}
		plain := lower.Question{Rules: relevance.Derivative()}
		less := program.Sunk(t.Context(), t, n, slot, plain)
		// Rules of other kinds walk the whole graph.
		same := lower.Question{Rules: apart()}
		answers, derivatives := differentiate(t, n, slot, plain, 2, 2)
		wantAnswers, wantDerivatives := differentiate(t, n, slot, same, 2, 2)
		if !sameBits(answers, wantAnswers) || !sameBits(derivatives, wantDerivatives) {
			t.Errorf("%s: other bits", name)
		}
		looks := 0
		for _, v := range less {
			q := lower.Question{Rules: relevance.Derivative(), Layer: v}
			if g, err := n.Graph(t.Context(), slot, 2); err != nil || g.Shape(v)[0] != 2 || looks > 3 {
				continue
			}
			looks++
			if got, _ := differentiate(t, n, slot, q, 2, 2); !sameBits(got, answers) {
				t.Errorf("%s: other bits with a look at %q", name, v)
			}
		}
	}
}

// apart returns rules of the kind that isn't derivatives, which come to the same.
func apart() relevance.Policy {
	return relevance.Policy{Name: "same", Grouped: true, Cases: []relevance.Case{{
		Match: relevance.Type("nothing"), Rule: relevance.Gradient,
	}}}
}
