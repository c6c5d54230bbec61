package report

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/english"
)

// IntervalsParams are the parameters of [Intervals].
type IntervalsParams struct {
	Label string `yaml:"label" doc:"the key column that names the rows; default: all"`
	Value string `yaml:"value" doc:"the number column of the estimate"`
	Low   string `yaml:"low" doc:"the number column of the interval's lower end"`
	High  string `yaml:"high" doc:"the number column of its upper end"`
	Title string `yaml:"title" doc:"a title; default: the table's"`
	X     string `yaml:"x_title" doc:"what the x-axis shows; default: the estimate's column and unit"`
}

// Intervals draws estimates with their intervals.
var Intervals = stages.New(stages.Def[IntervalsParams]{
	Name: "report/intervals",
	Doc: `estimates with their intervals (a forest plot)

A row of the figure is a row of the table, in the table's order: a point at the
estimate, a line from the lower to the upper end of its interval, which is left out
where an end is undefined.

  kappa: {uses: report/intervals, in: {table: fuse.ranking}, with: {label: method, value: kappa}}`,
	Version:  3,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs:   tablePort("the table of the estimates"),
	Outputs:  figurePorts(),
	Defaults: IntervalsParams{Value: "mean", Low: "low", High: "high"},
	Run:      runIntervals,
})

func runIntervals(_ context.Context, p IntervalsParams, e *stages.Env) error {
	t, err := readTable(e.Ports["table"])
	if err != nil {
		return err
	}
	labels := t.Keys
	if p.Label != "" {
		labels = append(without(axesOf(e.Ports["table"]), p.Label), p.Label)
	}
	names, err := keyColumns(t, "label", labels)
	if err != nil {
		return err
	}
	var at [3]int
	for i, f := range [][2]string{{"value", p.Value}, {"low", p.Low}, {"high", p.High}} {
		if at[i], err = numberColumn(t, f[0], f[1]); err != nil {
			return err
		}
	}
	unit := t.Numbers[at[0]].Unit
	v := &chart.Intervals{Title: cmp.Or(p.Title, t.Title), XLabel: cmp.Or(p.X, axisLabel(p.Value, unit))}
	missing := 0
	for _, r := range t.Rows {
		x := [3]float64{}
		for i, k := range at {
			x[i] = float64(r.Numbers[k])
		}
		if math.IsNaN(x[0]) {
			missing++
		}
		v.Names = append(v.Names, labelled(e, t, names, keysOf(r, names)))
		v.Value, v.Low, v.High = append(v.Value, x[0]), append(v.Low, x[1]), append(v.High, x[2])
	}
	caption := fmt.Sprintf("%s from %s to %s", axisLabel(p.Value, unit), p.Low, p.High)
	if v.Title != "" {
		caption = v.Title + ": " + caption
	}
	if missing > 0 {
		caption += fmt.Sprintf("; %s undefined", english.Count(missing, "row"))
	}
	setFigure(e, v.Figure(), caption+".")
	return nil
}
