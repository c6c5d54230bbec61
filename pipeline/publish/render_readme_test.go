package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// boards is a run whose stage board has a table of methods and one of all cases. The metric "few" has fewer
// images than the others.
func boards(methods, few int) *Results {
	r := &Results{Name: "boards", Publish: []string{"board", "curves"}}
	board := stages.Table{Title: "Leaderboard", Ranked: true, Keys: []string{"method"},
		Numbers: []stages.Column{{Name: "mean rank", Digits: 2}, {Name: "n", Unit: "images"},
			{Name: "undefined", Unit: "scores"}}}
	cases := stages.Table{Title: "All cases", Keys: []string{"metric", "method"},
		Numbers: []stages.Column{{Name: "mean", Digits: 2}, {Name: "n", Unit: "images"}, {Name: "rank"}}}
	for i := range methods {
		m := fmt.Sprintf("m%02d", i)
		board.Rows = append(board.Rows, stages.Row{Keys: []string{m},
			Numbers: []stages.Number{stages.Number(i), stages.Number(few), 0}})
		for metric, n := range map[string]int{"mass": 15, "few": few} {
			cases.Rows = append(cases.Rows, stages.Row{Keys: []string{metric, m},
				Numbers: []stages.Number{0.5, stages.Number(n), stages.Number(i)}})
		}
	}
	points := stages.Table{Title: "Points", Keys: []string{"method"}, Numbers: []stages.Column{{Name: "y"}},
		Rows: make([]stages.Row, 0)}
	for i := range 40 {
		points.Rows = append(points.Rows, stages.Row{Keys: []string{fmt.Sprintf("p%02d", i)},
			Numbers: []stages.Number{stages.Number(i)}})
	}
	r.Cells = []Cell{
		{Name: "mass", Stage: "mass", N: 15, Definition: stages.Sum([]byte("mass"))},
		{Name: "board", Stage: "board", N: -1, Definition: stages.Sum(fmt.Append(nil, methods, few)),
			Tables: []Table{{"table", board}, {"cases", cases}}},
		{Name: "curves", Stage: "curves", N: -1, Definition: stages.Sum([]byte("curves")),
			Tables:  []Table{{"points", points}},
			Figures: []Figure{{"figure", "svg", "", []byte("<svg></svg>")}}},
	}
	return r
}

// The main table of a stage is open, however many rows it has; a long one behind it, and that of a figure's
// points, are named. A count that all rows have is told once, and one that is 0 not at all.
func TestReadmeOpensMainTables(t *testing.T) {
	_, files := fresh(t, boards(20, 15))
	text := files["README.md"]
	for _, part := range []string{
		"\nLeaderboard ([CSV](tables/board.csv), [LaTeX](tables/board.tex))\n\n| method | mean rank |\n",
		"\n| m19 | 19.00 |\n\nIn every row: 15 images.\n",
		"\nAll cases: 40 rows in [tables/board.cases.csv](tables/board.cases.csv).\n",
		"\nPoints: 40 rows in [tables/curves.points.csv](tables/curves.points.csv).\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("README.md lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "undefined") || strings.Contains(text, "equally many") {
		t.Errorf("README.md speaks of undefined scores, or of other numbers of images:\n%s", text)
	}
	if _, files := fresh(t, boards(6, 15)); !strings.Contains(files["README.md"],
		"<details><summary>All cases (12 rows)</summary>") {
		t.Errorf("a short table isn't collapsed:\n%s", files["README.md"])
	}
}

// A row's n is the least of the metrics that it joins: README.md names how many images each has.
func TestReadmeTellsUnequalCounts(t *testing.T) {
	const want = "\nThe means aren't over equally many images: by metric, few 1, mass 15. " +
		"In a rank all count the same.\n"
	if _, files := fresh(t, boards(20, 1)); strings.Count(files["README.md"], want) != 1 {
		t.Errorf("README.md lacks %q:\n%s", want, files["README.md"])
	}
}
