package main

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
)

// TestInspectedClasses checks the line about the answer, of one class too.
func TestInspectedClasses(t *testing.T) {
	for _, tt := range []struct {
		classes       int
		probabilities bool
		want          string
	}{
		{5, false, "5; logits"},
		{5, true, "5; probabilities, whose logarithms count as logits"},
		{1, false, "1; a logit, whose sigmoid is the probability of one class"},
		{1, true,
			"1; the probability of one class, whose logarithm counts as logit; its opposite is no class"},
	} {
		var x registry.Inspection
		x.Feed.Classes, x.Feed.Probabilities = tt.classes, tt.probabilities
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
