package fuse

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
)

// extent matches the numbers of cases, and of items of each, in the text of an answer: those of
// [contest.casesText] and [contest.itemsText].
var extent = regexp.MustCompile(`in (?:one case|(\d+) cases).*?, (?:each )?over (?:(\d+) to )?(\d+) `)

// noWidth matches the interval of the first method's κ if its ends are as good as equal.
var noWidth = regexp.MustCompile(
	`Over resamples of the cases κ is (\S+) to (\S+) \(95 %\), and no other method comes first\.`)

// without replaces an interval that has no width, where the first method has as many wins in every case: that
// isn't certainty.
func without(text string, cases int) string {
	if ends := noWidth.FindStringSubmatch(text); ends != nil && ends[1] == ends[2] {
		return strings.Replace(text, ends[0], fmt.Sprintf("It wins alike in all %s, so that resamples of "+
			"them don't tell how sure its κ is.", english.Count(cases, "case")), 1)
	}
	return text
}

// present begins the answer with a sentence if there is none: where each case has too few items for any test
// of two methods, of those that report/leaderboard makes, or over resamples of the cases each method may come
// first.
func present(text string, tables map[string]stages.Table) string {
	t := tables["ranking"]
	items := ""
	for _, c := range t.Numbers {
		if c.Name == "n" {
			items = c.Unit
		}
	}
	methods, cases, low := 0, math.Inf(1), true // the fewest cases of a method; each may come first
	for _, r := range t.Rows {
		if !(t.Number(r, "n") > 0) {
			continue // it isn't ranked
		}
		methods, cases = methods+1, min(cases, t.Number(r, "cases"))
		low = low && t.Number(r, "rank low") == 1 // NaN, for one case, is no interval
	}
	found := extent.FindStringSubmatch(text)
	if methods < 2 || found == nil {
		return text
	}
	number := func(k, otherwise int) int {
		if n, err := strconv.Atoi(found[k]); err == nil {
			return n
		}
		return otherwise
	}
	total, most := number(1, 1), number(3, 0)
	among := english.Count(methods, t.Keys[0])
	text = without(text, total)
	family := scores.Family{Competitors: methods, Against: scores.Pairs, Holm: true, Level: claims.Level}
	// Fewer methods, in a case that lacks some, take fewer items.
	if least := family.Least(); int(cases) == total && most < least {
		return claims.NoAnswer(text, tables["claims"], claims.Level,
			claims.TooFew(english.Span(number(2, most), most, items), among, least), items)
	}
	if !low {
		return text
	}
	return claims.NoAnswer(text, tables["claims"], claims.Level, fmt.Sprintf(
		"over resamples of %s each of %s may come first", english.Count(total, "case"), among), "cases")
}
