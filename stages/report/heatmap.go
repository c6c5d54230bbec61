package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/english"
)

// HeatmapParams are the parameters of [Heatmap].
type HeatmapParams struct {
	Rows    []string  `yaml:"rows" doc:"key columns whose texts name rows"`
	Columns []string  `yaml:"columns" doc:"key columns whose texts name columns; default: all others"`
	Value   string    `yaml:"value" doc:"the number column to show; default: the first"`
	Bands   []float64 `yaml:"bands" doc:"ascending limits, between which cells have the same colour"`
	Names   []string  `yaml:"band_names" doc:"what the bands are called, the lowest first"`
	Sort    string    `yaml:"sort" doc:"which of rows and columns stand in the order of their mean, the smallest first; without it they stand in the experiment's order" choices:"none|rows|columns|both"`
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
below it, with a key, and the caption counts the cells in each. Rows that differ in the
first of several keys stand apart. Where columns are the same keys as rows, with against
before their names, a pair that the table has once stands below the diagonal:

  heatmap: {uses: report/heatmap, in: {table: consistency.table},
            with: {rows: [model], columns: [against model], value: rho, bands: [0.6, 0.8],
                   band_names: [weak, moderate, strong]}}

A cell without a row of the table is empty, one whose number is undefined has a dash.`,
	Version:  3,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs:   tablePort("the table to draw"),
	Outputs:  figurePorts(),
	Defaults: HeatmapParams{Digits: 2, Sort: "none"},
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
		if n := len(p.Names); n != 0 && n != len(p.Bands)+1 {
			return stages.BadField("band_names", "band_names has %d names for %d bands", n, len(p.Bands)+1)
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
	h := &heatCells{table: t, rows: rows, columns: columns, value: value, pairs: against(p.Rows, p.Columns),
		down: placesIn(e.Order, t, rows), across: placesIn(e.Order, t, columns),
		values: map[[2]int]float64{}, counts: make([]int, len(p.Bands)+1)}
	if h.pairs {
		h.down = placesIn(e.Order, t, rows, columns)
		h.across = h.down
	}
	if err := h.read(p.Bands); err != nil {
		return err
	}
	m := &chart.HeatMap{Title: cmp.Or(p.Title, t.Title), Digits: p.Digits, Bands: p.Bands, BandNames: p.Names}
	h.draw(m, e, p.Sort)
	caption := axisLabel(p.Value, t.Numbers[value].Unit)
	if m.Title != "" {
		caption = m.Title + ": " + caption
	}
	if p.Bands != nil {
		caption += "; " + inBands(p.Bands, h.counts, len(t.Rows)-h.undefined)
	}
	if h.undefined > 0 {
		caption += fmt.Sprintf("; %s undefined", english.Count(h.undefined, "cell"))
	}
	setFigure(e, m.Figure(), caption+".")
	return nil
}

// heatCells are the numbers of a table by the places where its rows and columns stand.
type heatCells struct {
	table         stages.Table
	rows, columns []int // key columns
	value         int   // number column
	pairs         bool  // columns are rows, and a pair stands below the diagonal
	down, across  [][]string
	values        map[[2]int]float64 // by place down and across
	counts        []int              // by band
	undefined     int
}

// read puts the rows of the table at their places.
func (h *heatCells) read(bands []float64) error {
	at := func(list [][]string, keys []string) int {
		return slices.IndexFunc(list, func(o []string) bool { return slices.Equal(o, keys) })
	}
	for _, r := range h.table.Rows {
		i, j := at(h.down, keysOf(r, h.rows)), at(h.across, keysOf(r, h.columns))
		if h.pairs && i < j {
			i, j = j, i
		}
		if _, ok := h.values[[2]int{i, j}]; ok {
			return stages.BadField("rows", "two rows of the table are at %q, %q: rows and columns must name "+
				"the key columns in which they differ, of %s", strings.Join(h.down[i], " · "),
				strings.Join(h.across[j], " · "), strings.Join(h.table.Keys, ", "))
		}
		v := float64(r.Numbers[h.value])
		if h.values[[2]int{i, j}] = v; math.IsNaN(v) {
			h.undefined++
		} else {
			h.counts[chart.Band(bands, v)]++
		}
	}
	return nil
}

// draw puts the numbers into a heat map, in an order that sort names.
func (h *heatCells) draw(m *chart.HeatMap, e *stages.Env, sort string) {
	down := byMean(h.values, len(h.down), 0, sort == "rows" || sort == "both")
	across := byMean(h.values, len(h.across), 1, sort == "columns" || sort == "both")
	if h.pairs { // if none is compared with itself, the first has no row, and the last no column
		down, across = used(h.values, down, 0), used(h.values, across, 1)
	}
	for n, i := range down {
		m.Rows = append(m.Rows, labelled(e, h.table, h.rows, h.down[i]))
		m.Breaks = append(m.Breaks, n > 0 && len(h.rows) > 1 && h.down[i][0] != h.down[down[n-1]][0])
		row, missing := make([]float64, len(across)), make([]bool, len(across))
		for k, j := range across {
			v, ok := h.values[[2]int{i, j}]
			if row[k], missing[k] = v, !ok; !ok {
				row[k] = math.NaN()
			}
		}
		m.Values, m.Missing = append(m.Values, row), append(m.Missing, missing)
	}
	for _, j := range across {
		m.Columns = append(m.Columns, labelled(e, h.table, h.columns, h.across[j]))
	}
}

// against reports whether the columns are the rows, each with "against" before its name.
func against(rows, columns []string) bool {
	return slices.EqualFunc(rows, columns, func(row, column string) bool { return column == "against "+row })
}

// axisOfKey returns the axis whose ids are in a key column.
func axisOfKey(key string) string { return strings.TrimPrefix(key, "against ") }

// keysOf returns the texts of a row in some key columns.
func keysOf(r stages.Row, columns []int) []string {
	return mapped(columns, func(i int) string { return r.Keys[i] })
}

// placesIn returns the distinct texts of the rows in some key columns, or in any of several lists of them,
// in the experiment's order, or else the table's.
func placesIn(order stages.Order, t stages.Table, columns ...[]int) [][]string {
	var out [][]string
	for _, list := range columns {
		for _, r := range t.Rows {
			keys := keysOf(r, list)
			if !slices.ContainsFunc(out, func(o []string) bool { return slices.Equal(o, keys) }) {
				out = append(out, keys)
			}
		}
	}
	if t.Ranked {
		return out
	}
	slices.SortStableFunc(out, func(a, b []string) int {
		for i, c := range columns[0] {
			if axis := axisOfKey(t.Keys[c]); order[axis] != nil {
				if by := order.Compare(axis, a[i], b[i]); by != 0 {
					return by
				}
			}
		}
		return 0
	})
	return out
}

// labelled joins the labels of texts in some key columns.
func labelled(e *stages.Env, t stages.Table, columns []int, keys []string) string {
	axes := mapped(columns, func(c int) string { return axisOfKey(t.Keys[c]) })
	return labelsOf(e, axes, keys)
}

// byMean returns the indices of n rows (side 0) or columns (side 1), sorted by their mean value if asked is
// set.
func byMean(values map[[2]int]float64, n, side int, asked bool) []int {
	out, sum, count := make([]int, n), make([]float64, n), make([]float64, n)
	for i := range out {
		out[i] = i
	}
	for _, at := range slices.SortedFunc(maps.Keys(values), func(a, b [2]int) int {
		return slices.Compare(a[:], b[:])
	}) {
		if v := values[at]; !math.IsNaN(v) {
			sum[at[side]], count[at[side]] = sum[at[side]]+v, count[at[side]]+1
		}
	}
	if asked {
		slices.SortStableFunc(out, func(a, b int) int {
			return cmp.Compare(sum[a]/count[a],
				sum[b]/count[b])
		})
	}
	return out
}

// used keeps the rows or columns that have a value.
func used(values map[[2]int]float64, list []int, side int) []int {
	has := map[int]bool{}
	for at := range values {
		has[at[side]] = true
	}
	return slices.DeleteFunc(list, func(i int) bool { return !has[i] })
}

// inBands writes in words how many numbers are in each band, the highest first.
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
	return "of " + english.Count(n, "number") + " " + strings.Join(parts, ", ")
}
