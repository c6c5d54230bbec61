package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// isMetric reports whether a stage is a metric, or makes the curves or responses of one: its numbers mean
// something only with their definition. A stage without inputs reads the numbers of others.
func isMetric(s *stages.Stage) bool {
	family, _, _ := strings.Cut(s.Name, "/")
	makes := func(types ...stages.Type) bool {
		return slices.ContainsFunc(s.Outputs, func(p stages.Port) bool {
			return slices.Contains(types, p.Type)
		})
	}
	switch {
	case len(s.Inputs) == 0:
		return false
	case family == "score" || family == "perturb":
		return makes(stages.Scores, stages.Curves)
	}
	return family == "stats" && makes(stages.Scores)
}

// TestDefinitions checks that every metric has a full definition, and that the direction and the range of its
// scores are known.
func TestDefinitions(t *testing.T) {
	for _, s := range Builtin().Family("") {
		aspects := s.Definition.Aspects()
		if !isMetric(s) {
			if aspects != nil {
				t.Errorf("%s has a definition, and no score or curve", s.Name)
			}
			continue
		}
		if aspects == nil {
			t.Errorf("%s lacks a Definition: Formula, Unit, Operator, …", s.Name)
		}
		for _, a := range aspects {
			if a.Text == "" || strings.HasSuffix(a.Text, ".") || strings.TrimSpace(a.Text) != a.Text {
				t.Errorf("%s: Definition.%s is %q: a text without a full stop at its end, \"none\" or "+
					"\"never\" if there is nothing", s.Name, strings.ToUpper(a.Name[:1])+a.Name[1:], a.Text)
			}
		}
		texts := scoreTexts(s)
		for _, p := range s.Outputs {
			if p.Type == stages.Scores && texts[p.Name] == "" {
				t.Errorf("%s: direction and range of the port %s aren't known: its Facts fail with the "+
					"facts of scores.go", s.Name, p.Name)
			}
		}
	}
}

// TestScoreTexts checks the description of scores: those of a metric with a direction, of one whose curves
// have it, and of one without.
func TestScoreTexts(t *testing.T) {
	for port, want := range map[string]string{
		"score/auc scores":              "better as the curves say, 0 … 1",
		"score/rise insertion":          "higher is better, worst 0, best 1",
		"score/rise deletion":           "lower is better, worst 1, best 0",
		"score/lipschitz scores":        "lower is better, worst ∞, best 0",
		"score/pointing-game chance":    "no direction, 0 … 1",
		"score/rank-correlation scores": "lower is better, worst 1, best −1",
		"score/pic-curve sic":           "higher is better, worst 0, best 1",
	} {
		name, port, _ := strings.Cut(port, " ")
		s, ok := Builtin().Lookup(name)
		if !ok {
			t.Fatalf("no stage %s", name)
		}
		if got := scoreTexts(s)[port]; got != want {
			t.Errorf("%s of %s: %q, not %q", port, name, got, want)
		}
	}
}
