package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// quickstart is a run with main tables of the quickstart, as they are for 300 masks of RISE (before) or 150
// (after), and as long tables of cases and pairs.
func quickstart(t *testing.T, version string) *Results {
	t.Helper()
	r := &Results{Name: "quickstart", Publish: []string{"ranking", "leaderboard", "ablations"},
		Order: stages.Order{}}
	for _, name := range r.Publish {
		b, err := os.ReadFile(filepath.Join("testdata", "quickstart", version+"."+name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows := readTable(b)
		table := stages.Table{Title: name, Ranked: name != "ablations"}
		for _, column := range rows[0].columns {
			if slices.Contains([]string{"method", "model", "order"}, column) {
				table.Keys = append(table.Keys, column)
				continue
			}
			n := stages.Column{Name: column, Digits: 4, Direction: stages.Higher, Unit: "share"}
			switch of, marks := strings.CutSuffix(column, unconfirmedColumn); {
			case marks:
				n = stages.Column{Name: column, Marks: of, Unit: "can't be told apart from the best"}
			case strings.HasPrefix(column, "rank"):
				n = stages.Column{Name: column, Direction: stages.Lower}
			case column == "mean rank":
				n = stages.Column{Name: column, Direction: stages.Lower, Digits: 2}
			case column == "wins" || column == "first":
				n.Digits, n.Unit = 0, "cases"
			case column == "of" || column == "cases":
				n = stages.Column{Name: column, Unit: "cases"}
			case column == "n" || column == "undefined":
				n = stages.Column{Name: column, Unit: map[string]string{"n": "images"}[column]}
			}
			table.Numbers = append(table.Numbers, n)
		}
		for _, row := range rows {
			line := stages.Row{Keys: row.Values(table.Keys)}
			for _, n := range table.Numbers {
				x, _ := row.number(n.Name)
				line.Numbers = append(line.Numbers, stages.Number(x))
			}
			table.Rows = append(table.Rows, line)
		}
		for i, key := range table.Keys {
			for _, row := range table.Rows {
				if id := row.Keys[i]; !slices.Contains(r.Order[key], id) {
					r.Order[key] = append(r.Order[key], id)
				}
			}
		}
		cases := stages.Table{Title: "All cases of " + name, Keys: []string{"case"},
			Numbers: []stages.Column{{Name: "mean", Digits: 4}}}
		for i := range 180 {
			cases.Rows = append(cases.Rows, stages.Row{Keys: []string{fmt.Sprintf("%03d", i)},
				Numbers: []stages.Number{stages.Number(i + len(version))}})
		}
		r.Cells = append(r.Cells, Cell{Name: name, Stage: name, N: -1,
			Definition: stages.Sum([]byte(version)), Tables: []Table{{"table", table}, {"cases", cases}}})
	}
	images := Cell{Name: "images", Stage: "images", N: 24, Definition: stages.Sum([]byte("images"))}
	r.Cells = append(r.Cells, images)
	return r
}

// TestPullRequestLines: for one changed parameter of one method README.md changes in 40 lines at most, those
// of the methods whose ranks or mean ranks changed.
func TestPullRequestLines(t *testing.T) {
	_, was := fresh(t, quickstart(t, "before"))
	_, is := fresh(t, quickstart(t, "after"))
	var lines []string
	only := func(sign, a, b string) {
		for line := range strings.Lines(a) {
			if !strings.Contains("\n"+b, "\n"+line) {
				lines = append(lines, sign+line)
			}
		}
	}
	only("-", was["README.md"], is["README.md"])
	only("+", is["README.md"], was["README.md"])
	golden(t, "pull-request.txt", strings.Join(lines, ""))
	if n := len(lines); n == 0 || n > 40 {
		t.Errorf("README.md changes in %d lines", n)
	}
}
