package score_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/score"
)

// TestInfidelityTakesTheExplainedOutput checks that the infidelity of a map is of the output that its method
// explains, and that it is refused for a method that doesn't declare one.
func TestInfidelityTakesTheExplainedOutput(t *testing.T) {
	const text = `name: declared
title: t
stages:
  model:  {uses: model/units}
  images: {uses: dataset/units, in: {model: model}}
  maps:   {uses: attribute/%s, in: {model: model, images: images}, with: {%s}}
  subset: {uses: perturb/subset, in: {model: model, images: images}, with: {draw: single, unit: region, region: 4}}
  score:  {uses: score/infidelity, in: {maps: maps, subsets: subset}, with: {%s}}
publish: []
`
	for _, tc := range []struct{ method, with, set, want string }{
		{"input-x-gradient", "", "", "logit contribution"},
		{"input-x-gradient", "output: probability", "", "probability contribution"},
		{"input-x-gradient", "output: probability", "output: logit", "logit contribution"},
		{"saliency", "abs: false, reduce: none, output: probability", "", "probability gradient"},
		{"saliency", "output: probability", "output: logit, map: contribution", "logit contribution"},
		{"saliency", "", "map: contribution", "write output: logit or probability"},
		{"random", "", "output: logit", "write map: gradient or contribution"},
	} {
		p, err := plan.Parse("x.yaml", fmt.Appendf(nil, text, tc.method, tc.with, tc.set), t.TempDir(),
			registry.Builtin(), plan.Overrides{})
		var got string
		if err != nil {
			p, got = &plan.Plan{}, err.Error()
		}
		for _, s := range p.Steps {
			for _, c := range s.Cells {
				if of, ok := c.Params.(*score.InfidelityParams); ok {
					got = of.Output + " " + of.Map
				}
			}
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s {%s}, infidelity {%s}: %q, want %q", tc.method, tc.with, tc.set, got, tc.want)
		}
	}
}
