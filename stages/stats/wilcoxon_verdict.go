package stats

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
)

// tooFew matches the words of [WilcoxonParams.answer] that a first sentence replaces.
var tooFew = regexp.MustCompile(
	`, none of which can be confirmed with so few \w+, however large the difference: it takes at least (\d+)`)

// present begins the answer with a sentence if there is none: where no difference from the reference is
// confirmed.
func (p WilcoxonParams) present(text string, tables map[string]stages.Table) string {
	t := tables["table"]
	open := slices.IndexFunc(t.Numbers, func(c stages.Column) bool { return c.Name == "not confirmed" })
	n := slices.IndexFunc(t.Numbers, func(c stages.Column) bool { return c.Name == "n" })
	if open < 0 || n < 0 || len(t.Rows) == 0 {
		return text
	}
	fewest, most, competitors := math.MaxInt, 0, map[string]bool{}
	for _, r := range t.Rows {
		if r.Numbers[open] != 1 {
			return text
		}
		fewest, most = min(fewest, int(r.Numbers[n])), max(most, int(r.Numbers[n]))
		competitors[r.Keys[0]], competitors[r.Keys[len(r.Keys)-1]] = true, true
	}
	items := t.Numbers[n].Unit
	among := english.Count(len(competitors), t.Keys[0])
	if m := tooFew.FindStringSubmatch(text); m != nil {
		least, _ := strconv.Atoi(m[1])
		return claims.NoAnswer(tooFew.ReplaceAllString(text, ""), tables["claims"], p.Alpha,
			claims.TooFew(english.Span(fewest, most, items), among, least), items)
	}
	return claims.NoAnswer(text, tables["claims"], p.Alpha, fmt.Sprintf(
		"over %s none of %s differs significantly from the %s", english.Span(fewest, most, items), among,
		referenceText(p.Reference)), items)
}

// referenceText names the reference in a sentence.
func referenceText(reference string) string {
	if reference == best {
		return "best"
	}
	return "reference"
}
