package report

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
)

// power describes the tests of a case.
func (p LeaderboardParams) power(in map[string]stages.Amount) stages.Power {
	axis, n := scores.CompetitorsOf(in["scores"], p.Rank)
	return p.family(axis, n).Power(in["scores"], p.By)
}

func (p LeaderboardParams) family(axis string, competitors int) scores.Family {
	return scores.Family{Axis: axis, Competitors: competitors, Against: p.Family, Holm: p.Correction == holm,
		Level: level}
}

// tooFew matches the sentence of [board.leads] that a first sentence replaces.
var tooFew = regexp.MustCompile(
	`With [^.]* no difference can be confirmed, however large: it takes at least \d+\. `)

// bothWays completes what [board.neighbours] says: that neighbours in the order of mean ranks differ in some
// case, be it in the other order.
var bothWays = strings.NewReplacer(
	"; each can be told apart from the next in some case", "; each differs significantly from the next in "+
		"some case, for better or worse",
	"; they can be told apart in some case", "; they differ significantly in some case, whichever is better")

// present begins the answer with a sentence if there is none: where in no case a competitor differs
// significantly from the best.
func (p LeaderboardParams) present(text string, tables map[string]stages.Table) string {
	text = bothWays.Replace(text)
	r := readDetails(tables["details"])
	if r.cases == 0 || r.confirmed {
		return text
	}
	family := p.family(r.axis, len(r.competitors))
	among := english.Count(len(r.competitors), r.axis)
	items := english.Span(r.fewest, r.most, r.items)
	if len(p.By) > 0 {
		items += " in a group"
	}
	if least := family.Least(); r.most < least {
		return claims.NoAnswer(tooFew.ReplaceAllString(text, ""), tables["claims"], level,
			claims.TooFew(items, among, least), r.items)
	}
	where := ""
	if r.cases > 1 {
		where = fmt.Sprintf(" in any of %d cases", r.cases)
	}
	return claims.NoAnswer(text, tables["claims"], level, fmt.Sprintf(
		"over %s none of %s differs significantly from the best%s", items, among, where), r.items)
}

// details are what the table of all cases says of the ranked ones.
type details struct {
	axis, items  string
	competitors  map[string]bool
	cases        int
	fewest, most int  // items of a competitor
	confirmed    bool // some competitor differs significantly from the best of its case
}

func readDetails(t stages.Table) details {
	r := details{competitors: map[string]bool{}, fewest: math.MaxInt}
	if len(t.Keys) == 0 {
		return r
	}
	last := len(t.Keys) - 1
	r.axis = t.Keys[last]
	for _, c := range t.Numbers {
		if c.Name == "n" {
			r.items = c.Unit
		}
	}
	cases := map[string]bool{}
	for _, row := range t.Rows {
		number := func(name string) float64 { return t.Number(row, name) }
		r.competitors[row.Keys[last]] = true
		if math.IsNaN(number("rank")) {
			continue
		}
		cases[strings.Join(row.Keys[:last], "\x00")] = true
		n := int(number("n"))
		r.fewest, r.most = min(r.fewest, n), max(r.most, n)
		r.confirmed = r.confirmed || number("p") <= level
	}
	r.cases = len(cases)
	return r
}
