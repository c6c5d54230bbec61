package claims

import (
	"cmp"
	"math"

	"github.com/runexp/runexp/stages"
)

// Port is the output that holds the table of claims.
var Port = stages.Port{Name: "claims", Type: stages.Claims,
	Doc: "one row per claim: in how many tests it holds, and number, rival's number and p of the test in " +
		"which it fails most, or holds least; empty, and not published, without claims"}

// AnswerPort is the output that says in words what a stage has found, what became of claims among it.
var AnswerPort = stages.Port{Name: "answer", Type: stages.Text, Doc: "the result in words"}

// AnswerFacts are the facts of a stage whose output is an answer: it is Markdown.
func AnswerFacts[P any](P, map[string]stages.Facts) (map[string]stages.Facts, error) {
	return map[string]stages.Facts{"answer": {"ext": "md"}}, nil
}

// Table has a row for every claim; without claims it is empty. number describes the numbers that are
// compared, and pTolerance is within which p-values count as reproduced.
func (o *Outcomes) Table(number stages.Column, pTolerance float64) stages.Table {
	if len(o.all) == 0 {
		return stages.Table{}
	}
	number.Name, number.Direction = "number", ""
	rival := number
	rival.Name = "rival"
	t := stages.Table{Title: "What is claimed", Keys: []string{"claim", "verdict"}, Numbers: []stages.Column{
		{Name: "held", Unit: "tests"},
		{Name: "tests", Unit: "tests"},
		{Name: "confirmed", Unit: "tests"},
		{Name: "undefined", Unit: "tests"},
		number, rival,
		{Name: "n", Unit: cmp.Or(o.results.Unit, stages.ItemsOf(nil))},
		{Name: "p", Tolerance: pTolerance, Digits: 4},
	}}
	for _, c := range o.all {
		good, sure, open, tested := 0, 0, 0, false
		closest := test{Comparison: Comparison{X: math.NaN(), Y: math.NaN(), P: math.NaN()}}
		for i, x := range c.tests {
			switch x.state {
			case held:
				good++
			case undefined:
				open++
			}
			if !math.IsNaN(x.P) {
				tested = true
				if x.state == held && x.P <= o.level() {
					sure++
				}
			}
			if i == 0 || x.worse(&closest) {
				closest = x
			}
		}
		confirmed := math.NaN()
		if tested {
			confirmed = float64(sure)
		}
		row := stages.Row{Keys: []string{c.text, c.verdict(good, open)}}
		for _, x := range []float64{float64(good), float64(len(c.tests)), confirmed, float64(open), closest.X,
			closest.Y, float64(closest.N), closest.P} {
			row.Numbers = append(row.Numbers, stages.Number(x))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// verdict names the outcome of a claim in a word.
func (c *outcome) verdict(good, open int) string {
	switch n := len(c.tests); {
	case n == 0 && len(c.absent) > 0:
		var ids []string
		for _, a := range c.absent {
			ids = append(ids, a.id)
		}
		return "not tested" + lacking(ids)
	case n == 0:
		return "not tested"
	case good == n:
		return "holds"
	case open == n:
		return "undefined"
	case good == 0:
		return "doesn't hold"
	}
	return "holds in part"
}
