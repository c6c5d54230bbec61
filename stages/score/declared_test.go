package score_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
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

// TestScoresTakeTheExplainedClass checks that completeness is of the class that the method explains, with the
// model's predictions for that, and that scores of subsets are refused with responses of another class.
func TestScoresTakeTheExplainedClass(t *testing.T) {
	const text = `name: explained
title: t
stages:
  model:    {uses: model/units}
  images:   {uses: dataset/units, in: {model: model}}
  other:    {uses: model/predict, in: {model: model, images: images}}
  maps:     {uses: attribute/input-x-gradient, in: {model: model, images: images, labels: images.labels%s}}
  absolute: {uses: maps/reduce, in: {maps: maps}, with: {how: abs-sum}}
  subset:   {uses: perturb/subset, in: {model: model, images: images, labels: images.labels}, with: {draw: single%s}}
  score:    {uses: score/%s}
publish: []
`
	const complete = "completeness, in: {model: model, images: images, maps: maps%s}"
	const correlation = "faithfulness-estimate, in: {maps: absolute, subsets: subset}"
	all, labelled := fmt.Sprintf(complete, ""), fmt.Sprintf(complete, ", labels: images.labels")
	wired := fmt.Sprintf(complete, ", targets: other")
	for _, tc := range []struct{ method, subset, score, want string }{
		{"}, with: {target: label", "", labelled, "label label label"},
		{"}, with: {target: 3", "", all, "3 3 3"},
		{"", "", all, "predicted predicted predicted"},
		{"}, with: {target: label", "", all, "target: target is label, but the port labels isn't wired"},
		{", targets: other", "", wired, "declared predicted predicted"},
		{", targets: other", "", all, "target is what its method declares: wire the input targets, too"},
		{"}, with: {target: label", "", correlation,
			`is of the class "predicted", and absolute of "label": write target: label for subset, too`},
		{"}, with: {target: label", ", target: label", correlation, ""},
		{", targets: other", "", correlation, ""},
		{"", "", correlation, ""},
	} {
		p, err := plan.Parse("x.yaml", fmt.Appendf(nil, text, tc.method, tc.subset, tc.score), t.TempDir(),
			registry.Builtin(), plan.Overrides{})
		if err != nil {
			ds, _ := err.(plan.Diags)
			all := tc.want != ""
			for part := range strings.SplitSeq(tc.want, ": ") {
				all = all && len(ds) == 1 && strings.Contains(ds[0].Msg+": "+ds[0].Hint, part)
			}
			if !all {
				t.Errorf("%s, %s: %v", tc.method, tc.score, err)
			}
			continue
		}
		var got []string
		at := slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.Name == "score" })
		for _, c := range p.Steps[at].Cells {
			of, ok := c.Params.(*score.CompletenessParams)
			if !ok {
				continue
			}
			got = append(got, of.Target)
			for _, name := range []string{"targets", "whole"} {
				k := slices.IndexFunc(c.Stage.Inputs, func(p stages.Port) bool { return p.Name == name })
				params := reflect.ValueOf(c.Inputs[k].Edges[0].From.Params).Elem()
				got = append(got, params.FieldByName("Target").String())
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s, %s: %q, want %q", tc.method, tc.score, s, tc.want)
		}
	}
}
