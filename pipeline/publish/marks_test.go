package publish

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestMarkedNumbers: a column of marks is asterisks and their meaning in README.md, and numbers in the CSV; a
// mark that comes or goes is a difference.
func TestMarkedNumbers(t *testing.T) {
	results := func(marks ...stages.Number) *Results {
		table := stages.Table{Title: "Table 3", Keys: []string{"method"},
			Numbers: []stages.Column{{Name: "Total", Tolerance: 1e-3, Digits: 3},
				{Name: "Total not confirmed", Marks: "Total", Unit: "can't be told apart"}}}
		for k, id := range []string{"abslrp", "clrp", "rap"} {
			table.Rows = append(table.Rows, stages.Row{Keys: []string{id},
				Numbers: []stages.Number{stages.Number(0.272 - 0.01*float64(k)), marks[k]}})
		}
		cell := Cell{Name: "table", Stage: "table", N: -1, Definition: stages.Sum([]byte("table")),
			Tables: []Table{{"table", table}}}
		return &Results{Name: "marks", Publish: []string{"table"}, Cells: []Cell{cell}}
	}
	dir, got := fresh(t, results(1, 1, 0))
	for _, want := range []string{"| method | Total |", "| abslrp | 0.272* |", "| clrp | 0.262* |",
		"| rap | 0.252 |", "\n\n\\* can't be told apart\n"} {
		if !strings.Contains(got["README.md"], want) {
			t.Errorf("README.md lacks %q:\n%s", want, got["README.md"])
		}
	}
	want := "method,Total,Total not confirmed\nabslrp,0.272,1\nclrp,0.262,1\nrap,0.252,0\n"
	if got["tables/table.csv"] != want {
		t.Errorf("tables/table.csv is\n%s", got["tables/table.csv"])
	}
	if v := write(t, dir, results(1, 1, 0)); !v.OK() {
		t.Errorf("the same marks: %s", v)
	}
	if v := write(t, dir, results(1, 0, 0)); v.OK() {
		t.Errorf("another mark is no difference: %s", v)
	}
}
