package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/stat"
)

// CriticalDifferenceParams are the parameters of [CriticalDifference].
type CriticalDifferenceParams struct {
	Title string `yaml:"title" doc:"a title; default: the table's"`
}

// CriticalDifference draws mean ranks, and joins those that differ by less than the critical difference
// (Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006, Figure 1).
var CriticalDifference = stages.New(stages.Def[CriticalDifferenceParams]{
	Name: "report/critical-difference",
	Doc: `mean ranks with their critical difference

Competitors stand at their mean ranks, the best on the left. A bar joins those that
can't be told apart: the first and the last on it differ by less than the critical
difference, whose length stands above the axis. Demšar, JMLR 2006.

  ranks: {uses: stats/friedman, in: {scores: gae.total}, over: all, with: {rank: method}}
  diagram: {uses: report/critical-difference, in: {table: ranks.table}}`,
	Version:  3,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs:   tablePort("a table of stats/friedman"),
	Outputs:  figurePorts(),
	Run:      runCriticalDifference,
})

func runCriticalDifference(_ context.Context, p CriticalDifferenceParams, e *stages.Env) error {
	if len(e.Ports["table"]) > 1 {
		return fmt.Errorf("a diagram has one table of stats/friedman, got %d: over must collapse no axis",
			len(e.Ports["table"]))
	}
	t, err := readTable(e.Ports["table"])
	if err != nil {
		return err
	}
	rank, err1 := numberColumn(t, "table", "mean rank")
	critical, err2 := numberColumn(t, "table", "critical difference")
	if err := cmp.Or(err1, err2); err != nil || len(t.Keys) == 0 {
		return fmt.Errorf("the table %q isn't one of stats/friedman: it lacks a key column or the number "+
			"columns %q and %q", t.Title, "mean rank", "critical difference")
	}
	r := &chart.Ranks{Title: cmp.Or(p.Title, t.Title), Critical: math.NaN()}
	var missing []string
	for _, row := range t.Rows {
		x := float64(row.Numbers[rank])
		if math.IsNaN(x) || x < 1 || math.IsInf(x, 0) {
			missing = append(missing, e.Label(t.Keys[0], row.Keys[0]))
			continue
		}
		r.Names, r.Rank = append(r.Names, e.Label(t.Keys[0], row.Keys[0])), append(r.Rank, x)
		r.Critical = float64(row.Numbers[critical])
	}
	caption := "mean ranks, the best on the left"
	if !math.IsNaN(r.Critical) {
		r.Groups = stat.Alike(r.Rank, r.Critical)
		caption += "; bars join what can't be told apart"
	}
	if r.Title != "" {
		caption = r.Title + ": " + caption
	}
	if missing != nil {
		caption += "; without a mean rank: " + strings.Join(missing, ", ")
	}
	setFigure(e, r.Figure(), caption+".")
	return nil
}
