package typeset

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func longTable() stages.Table {
	t := stages.Table{Title: "All cases", Ranked: true, Keys: []string{"domain", "method"},
		Numbers: []stages.Column{{Name: "mean", Direction: stages.Higher, Digits: 2},
			{Name: "mean not confirmed", Marks: "mean", Unit: "the best, and others"},
			{Name: "low", Digits: 2}, {Name: "high", Digits: 2}, {Name: "n"}}}
	row := func(domain, method string, x float64, mark stages.Number) {
		t.Rows = append(t.Rows, stages.Row{Keys: []string{domain, method}, Numbers: []stages.Number{
			stages.Number(x), mark, stages.Number(x - 0.1), stages.Number(x + 0.2), 8}})
	}
	row("a", "ig", 0.5, 1)
	row("a", "lrp", 0.75, 0)
	row("b", "lrp", math.NaN(), 0)
	return t
}

// TestPivot: a number by two axes with its interval and marks, several numbers, none left out, and an
// undefined one where there is no row.
func TestPivot(t *testing.T) {
	for _, c := range []struct {
		rows, columns, values string
		want                  string // of Markdown
	}{
		{"method", "domain", "", `
| method | a ↑ | a low | a high | b ↑ | b low | b high |
| :-- | --: | --: | --: | --: | --: | --: |
| ig | 0.50* | 0.40 | 0.70 |  |  |  |
| lrp | 0.75 | 0.65 | 0.95 |  |  |  |

\* the best, and others
`},
		{"domain", "method", "n,low", `
| domain | ig n | ig low | lrp n | lrp low |
| :-- | --: | --: | --: | --: |
| a | 8 | 0.40 | 8 | 0.65 |
| b |  |  | 8 |  |
`},
		{"method", "", "n", `
| method | domain | n |
| :-- | :-- | --: |
| ig | a | 8 |
| lrp | a | 8 |
| lrp | b | 8 |
`},
		{"", "", "", Markdown(longTable())},
	} {
		got, err := Pivot(longTable(), fields(c.rows), fields(c.columns), fields(c.values))
		if err != nil {
			t.Error(err)
			continue
		}
		if text := Markdown(got); strings.TrimSpace(text) != strings.TrimSpace(c.want) {
			t.Errorf("rows %q, columns %q, values %q:\n%s\nwant\n%s", c.rows, c.columns, c.values, text,
				c.want)
		}
	}
	if got, _ := Pivot(longTable(), []string{"method"}, []string{"domain"}, nil); got.Ranked {
		t.Error("a pivot's rows are in no order of rank")
	} else if text := LaTeX(got); !strings.Contains(text,
		`ig & $\underline{0.50}^{+0.20}_{-0.10}$\rlap{\textsuperscript{*}} & --`) {
		t.Error(text)
	}
}

func TestPivotErrors(t *testing.T) {
	twice := longTable()
	twice.Rows = append(twice.Rows, twice.Rows[1])
	for _, c := range []struct {
		table                 stages.Table
		rows, columns, values string
		want                  string
	}{
		{longTable(), "model", "", "", `no column of texts called "model"; it has domain, method`},
		{longTable(), "method", "", "median", `no column of numbers called "median"; it has mean, mean not`},
		{longTable(), "method", "method", "", `column "method" is named twice`},
		{twice, "method", "domain", "", "two rows fall on lrp, a"},
	} {
		_, err := Pivot(c.table, fields(c.rows), fields(c.columns), fields(c.values))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func fields(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
