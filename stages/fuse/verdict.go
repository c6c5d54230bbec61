package fuse

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
)

// present begins the answer with a sentence if there is none: where over resamples of the cases each method
// may come first.
func present(text string, tables map[string]stages.Table) string {
	t := tables["ranking"]
	at := map[string]int{}
	for k, c := range t.Numbers {
		at[c.Name] = k
	}
	methods, cases := 0, 0.0
	for _, r := range t.Rows {
		number := func(name string) float64 { return float64(r.Numbers[at[name]]) }
		if math.IsNaN(number("rank")) {
			continue // it isn't ranked
		}
		if number("rank low") != 1 {
			return text // NaN, for one case, is no interval
		}
		methods, cases = methods+1, max(cases, number("cases"))
	}
	if methods < 2 {
		return text
	}
	return claims.NoAnswer(text, tables["claims"], claims.Level, fmt.Sprintf(
		"over resamples of %s each of %s may come first", english.Count(int(cases), "case"),
		english.Count(methods, t.Keys[0])))
}
