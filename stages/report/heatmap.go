package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// HeatmapParams are the parameters of [Heatmap].
type HeatmapParams struct {
	Rows    []string  `yaml:"rows" doc:"key columns whose texts name rows"`
	Columns []string  `yaml:"columns" doc:"key columns whose texts name columns; default: all others"`
	Value   string    `yaml:"value" doc:"the number column to show; default: the first"`
	Bands   []float64 `yaml:"bands" doc:"ascending limits, between which cells have the same colour"`
	Digits  int       `yaml:"digits" doc:"decimals of the numbers" min:"0" max:"6"`
	Title   string    `yaml:"title" doc:"a title; default: the table's"`
}

// Heatmap draws a table as cells with colours and numbers.
var Heatmap = stages.New(stages.Def[HeatmapParams]{
	Name: "report/heatmap",
	Doc: `a table as a heat map with numbers in its cells

A row of the table is one cell, at the row and the column that its keys name; over
collapses axes, which become key columns. Colours go from the smallest number, pale, to
the largest, dark blue, or from blue over white to red if a number is negative. With
bands they show between which limits a number lies, a limit itself being in the band
below it, and the caption counts the cells in each:

  heatmap: {uses: report/heatmap, in: {table: consistency.table},
            with: {rows: [case a], columns: [case b], value: rho, bands: [0.6, 0.8]}}`,
	Version:  2,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs:   tablePort("the table to draw"),
	Outputs:  figurePorts(),
	Defaults: HeatmapParams{Digits: 2},
	Check: func(p HeatmapParams, _ func(string) bool) error {
		if len(p.Rows) == 0 {
			return stages.BadField("rows", "rows is required: name key columns of the table")
		}
		for i, k := range slices.Concat(p.Rows, p.Columns) {
			if slices.Contains(slices.Concat(p.Rows, p.Columns)[:i], k) {
				return stages.BadField("columns", "the key column %q is named twice in rows and columns", k)
			}
		}
		for i, b := range p.Bands {
			if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= p.Bands[i-1] {
				return stages.BadField("bands", "the limits %v aren't ascending", p.Bands)
			}
		}
		return nil
	},
	Run: runHeatmap,
})

func runHeatmap(_ context.Context, p HeatmapParams, e *stages.Env) error {
	t, err := readTable(e.Ports["table"])
	if err != nil {
		return err
	}
	rows, err := keyColumns(t, "rows", p.Rows)
	if err != nil {
		return err
	}
	if len(p.Columns) == 0 {
		p.Columns = without(t.Keys, p.Rows...)
	}
	columns, err := keyColumns(t, "columns", p.Columns)
	if err != nil {
		return err
	}
	if p.Value == "" && len(t.Numbers) > 0 {
		p.Value = t.Numbers[0].Name
	}
	value, err := numberColumn(t, "value", p.Value)
	if err != nil {
		return err
	}
	m := &chart.HeatMap{Title: cmp.Or(p.Title, t.Title), Digits: p.Digits, Bands: p.Bands,
		Rows: namesIn(e.Order, t, rows), Columns: namesIn(e.Order, t, columns)}
	for range m.Rows {
		row := make([]float64, len(m.Columns))
		for j := range row {
			row[j] = math.NaN()
		}
		m.Values = append(m.Values, row)
	}
	filled := map[[2]int]bool{}
	counts, empty := make([]int, len(p.Bands)+1), 0
	for _, r := range t.Rows {
		i, j := slices.Index(m.Rows, labelOf(r, rows)), slices.Index(m.Columns, labelOf(r, columns))
		if filled[[2]int{i, j}] {
			return stages.BadField("rows",
				"two rows of the table are at %q, %q: rows and columns must name the key "+
					"columns in which they differ, of %s", m.Rows[i], m.Columns[j],
				strings.Join(t.Keys, ", "))
		}
		v := float64(r.Numbers[value])
		filled[[2]int{i, j}], m.Values[i][j] = true, v
		if math.IsNaN(v) {
			empty++
		} else {
			counts[chart.Band(p.Bands, v)]++
		}
	}
	caption := axisLabel(p.Value, t.Numbers[value].Unit)
	if m.Title != "" {
		caption = m.Title + ": " + caption
	}
	if p.Bands != nil {
		caption += "; " + inBands(p.Bands, counts, len(t.Rows)-empty)
	}
	if empty > 0 {
		caption += fmt.Sprintf("; %s undefined", count(empty, "cell"))
	}
	setFigure(e, m.Figure(), caption+".")
	return nil
}

// namesIn returns the distinct labels of the rows in some key columns, in the experiment's order, or the
// table's where that has none.
func namesIn(order stages.Order, t stages.Table, columns []int) []string {
	rows := slices.Clone(t.Rows)
	slices.SortStableFunc(rows, func(a, b stages.Row) int {
		for _, c := range columns {
			if axis := t.Keys[c]; order[axis] != nil && !t.Ranked {
				if by := order.Compare(axis, a.Keys[c], b.Keys[c]); by != 0 {
					return by
				}
			}
		}
		return 0
	})
	var names []string
	for _, r := range rows {
		if name := labelOf(r, columns); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// inBands says in words how many numbers are in each band, the highest first.
func inBands(bands []float64, counts []int, n int) string {
	limit := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	var parts []string
	for k := len(counts) - 1; k >= 0; k-- {
		switch {
		case k == len(bands):
			parts = append(parts, fmt.Sprintf("%d above %s", counts[k], limit(bands[k-1])))
		case k > 0:
			parts = append(parts,
				fmt.Sprintf("%d above %s up to %s", counts[k], limit(bands[k-1]), limit(bands[k])))
		default:
			parts = append(parts, fmt.Sprintf("%d at most %s", counts[k], limit(bands[0])))
		}
	}
	return "of " + count(n, "number") + " " + strings.Join(parts, ", ")
}
