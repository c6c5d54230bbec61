package report

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
	"; they can be told apart in some case", "; they differ significantly in some case, whichever is better",
	"in none of 1 case all", "in the only case not all")

// alike matches the neighbours in the order of mean ranks that differ in no case, where p is the smallest one
// of the cases, times their number; the lead in a case has the p of this case alone.
var alike = regexp.MustCompile(`^[^;]*; .*?(?:told apart from the next|can't be told apart)\.`)

// lead matches the lead in a case, its interval and what the test says of it.
var lead = regexp.MustCompile(`(\[(\S+), (\S+)\] over [^,.]*), confirmed \(`)

// plainly returns an answer of several ranked cases without a contradiction between its tests: by which p
// neighbours are alike, and that ranks which differ significantly confirm no mean whose interval contains 0.
func plainly(text string, cases int) string {
	text = bothWays.Replace(text)
	if at := alike.FindStringIndex(text); cases > 1 && at != nil {
		end := at[1] - 1
		text = text[:end] + fmt.Sprintf(" if p counts all %d cases", cases) + text[end:]
	}
	return lead.ReplaceAllStringFunc(text, func(found string) string {
		part := lead.FindStringSubmatch(found)
		low, _ := strconv.ParseFloat(part[2], 64)
		if high, err := strconv.ParseFloat(part[3], 64); err != nil || low > 0 || high < 0 {
			return found
		}
		return part[1] + ", of which the ranks differ significantly and the mean doesn't ("
	})
}

// present begins the answer with a sentence if there is none: where in no case a competitor differs
// significantly from the best.
func (p LeaderboardParams) present(text string, tables map[string]stages.Table) string {
	r := readDetails(tables["details"])
	text = plainly(text, r.cases)
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
