// Package stats has the stages that decide which differences between scores are real: each makes a table,
// and an answer in words. The statistics are in stages/internal/stat. stats.go has the functions that the
// stages share, claims.go the answers to the claims of an experiment, wilcoxon_verdict.go whether
// stats/wilcoxon has an answer, and every other file is a stage.
package stats

import (
	"fmt"
	"maps"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
)

// numbers returns a row's numbers.
func numbers(x ...float64) []stages.Number {
	out := make([]stages.Number, len(x))
	for i, v := range x {
		out[i] = stages.Number(v)
	}
	return out
}

// competitors returns the number of ids on the axis that a parameter names, or on the only one.
func competitors(a stages.Amount, axis string) (n int) {
	if axis != "" || len(a.IDs) != 1 {
		return a.IDs[axis]
	}
	for _, n = range a.IDs {
	}
	return n
}

// but returns the ids of all axes but one, whose ids have no number of their own.
func but(ids map[string][]string, axis string) map[string][]string {
	others := maps.Clone(ids)
	delete(others, axis)
	return others
}

// combinations are the facts of items that are combinations of ids. Those of images stay without a name, so
// that they keep their keys.
func combinations(in map[string]stages.Facts) stages.Facts {
	for _, f := range in {
		if f[stages.ItemsFact] != "" {
			return stages.Facts{stages.ItemsFact: "combinations"}
		}
	}
	return nil
}

// leaves adds a combination of ids to those with undefined scores or curves, if it has any.
func leaves(left []string, r *claims.Results, ids []string, undefined int) []string {
	if undefined == 0 {
		return left
	}
	return append(left, fmt.Sprintf("%d of %s", undefined, nameOf(called(r, ids))))
}

// leftOut is a sentence about items that have undefined scores or curves, "" without any.
func leftOut(left []string, items, nouns string) string {
	if len(left) == 0 {
		return ""
	}
	rest := ""
	if more := len(left) - named; more > 0 {
		left, rest = left[:named], fmt.Sprintf("; and in %d more", more)
	}
	return " " + english.Upper(items) + " are left out for undefined " + nouns + ": " +
		strings.Join(left, "; ") + rest + "."
}

// named is how many combinations a sentence names before it counts the rest.
const named = 5

// in names the case that a sentence is about: "In gae vgg, ", or nothing if it is the only one.
func in(m *scores.Case) string {
	if m.Name != "" {
		return "In " + m.Name + ", "
	}
	return ""
}

// pText formats a p-value for a sentence.
func pText(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// pDigits is the number of decimals of a p-value in a table.
const pDigits = 4

// pTolerance returns the difference within which a p-value counts as reproduced: rounding on another
// machine may swap the ranks of two almost equal scores, unless they are exact there.
func pTolerance(cases []scores.Case) float64 {
	for i := range cases {
		for _, c := range cases[i].Cells {
			if c != nil && c.Measure.ItemTolerance > 0 {
				return 0.02
			}
		}
	}
	return 0
}
