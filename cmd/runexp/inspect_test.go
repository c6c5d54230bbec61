package main

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
)

// TestInspectedClasses checks the line about the answer, of one output too.
func TestInspectedClasses(t *testing.T) {
	for _, tt := range []struct {
		classes              int
		sides, probabilities bool
		want                 string
	}{
		{5, false, false, "5; logits"},
		{5, false, true, "5; probabilities, whose logarithms count as logits"},
		{2, true, false, "2, of one output: 1 that it answers for, 0 against it; a logit, whose sigmoid is " +
			"the probability; a regression would look the same"},
		{2, true, true, "2, of one output: 1 that it answers for, 0 against it; a probability, whose " +
			"logarithm counts as logit"},
	} {
		var x registry.Inspection
		x.Feed.Classes, x.Feed.Sides, x.Feed.Probabilities = tt.classes, tt.sides, tt.probabilities
		var b strings.Builder
		if err := inspectionPage().Execute(&b, &x); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(b.String(), "\nclasses\t")
		line, _, _ := strings.Cut(rest, "\n")
		if line != tt.want {
			t.Errorf("%q, want %q", line, tt.want)
		}
	}
}
