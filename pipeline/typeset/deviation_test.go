package typeset

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestDeviations holds how mean ± standard deviation is displayed, with an interval and a mark and without a
// deviation.
func TestDeviations(t *testing.T) {
	nan := stages.Number(math.NaN())
	table := stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{
		{Name: "mean", Unit: "share", Direction: stages.Higher, Digits: 3},
		{Name: "low", Digits: 3}, {Name: "high", Digits: 3},
		{Name: "sd", Digits: 3},
		{Name: "drop", Digits: 2}, {Name: "drop mark", Marks: "drop", Unit: "best"},
		{Name: "drop sd", Digits: 2},
		{Name: "n", Unit: "images"},
	}, Rows: []stages.Row{
		{Keys: []string{"rise"}, Numbers: []stages.Number{0.5, 0.25, 0.625, 0.031, 3, 1, 0.126, 8}},
		{Keys: []string{"ig"}, Numbers: []stages.Number{0.25, 0.125, 0.5, nan, 2, 0, nan, 7}},
	}}
	want := `| method | mean ± sd (share) ↑ [95 % interval] | drop ± sd | images |
| :-- | --: | --: | --: |
| rise | 0.500 ± 0.031 [0.250, 0.625] | 3.00 ± 0.13* | 8 |
| ig | 0.250 [0.125, 0.500] | 2.00 | 7 |`
	if got := tableGrid(table).Short(Short{Rows: 9, Numbers: 9, Parts: 1}).Tables[0]; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := LaTeX(table)
	for _, line := range []string{
		"% Behind \\pm: the standard deviation over seeds.",
		"method & mean $\\uparrow$ & drop & n \\\\",
		"rise & $\\mathbf{0.500}^{+0.125}_{-0.250} \\pm 0.031$ & " +
			"$3.00 \\pm 0.13$\\rlap{\\textsuperscript{*}} & $8$ \\\\[2pt]",
		"ig & $\\underline{0.250}^{+0.250}_{-0.125}$ & $2.00$ & $7$ \\\\[2pt]",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}
