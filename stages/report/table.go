package report

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

// TableParams are the parameters of [Table].
type TableParams struct {
	Rows      []string `yaml:"rows" axis:"values" doc:"axes whose ids are rows; axes in neither rows nor columns are appended"`
	Columns   []string `yaml:"columns" axis:"values" doc:"axes whose ids are columns; default: if rows is set, all other axes"`
	Statistic string   `yaml:"statistic" doc:"statistic over the images of a cell" choices:"mean|median"`
	Mark      string   `yaml:"mark" doc:"the column that is marked, or an id of those that are; default: all"`
	Intervals bool     `yaml:"intervals" doc:"also show the interval of every mean; a table of one column always does"`
	Title     string   `yaml:"title" doc:"a title"`
	// The correction applies to claims.
	Correction string `yaml:"correction" key:"added" doc:"the correction of the p-values of claims for their number" choices:"holm|none"`
	scores.Exactly
	claims.List
	Grouped
}

// Validate refuses claims and precisions.
func (p TableParams) Validate() error { return errors.Join(p.List.Validate(), p.Exactly.Validate()) }

// Known rejects claims that name unknown ids.
func (p TableParams) Known(ids map[string][]string) error { return p.List.Known(ids, p.Statistic) }

// Table arranges scores: one number per cell, the mean or median over its defined scores. The column n is
// the smallest number of such scores in a row; undefined is the number of the others.
var Table = stages.New(stages.Def[TableParams]{
	Name: "report/table",
	Doc: `a table of scores, with axes as rows and columns

Every cell shows the mean or the median of its defined scores. n is the smallest
number of images of a cell in the row; undefined counts the undefined scores. low and
high are the ends of the mean's 95 % interval over images (BCa; Efron 1987).
` + interval.Small + `
Of seeds, as axes of replicates, every image counts with its mean over them, and sd is
the standard deviation over seeds of each seed's mean or median: shown as mean ± sd.

Claims compare cells over the images that both have, by Wilcoxon's signed-rank test,
corrected by Holm for the number of tests or not at all.

With marks an asterisk stands at the best and at all others whose difference from it
isn't confirmed, nowhere if every difference is:

  pairs: {uses: stats/wilcoxon, in: {scores: gae.total}, over: [method], with: {among: method}}
  table: {uses: report/table, in: {values: gae.total, marks: pairs}, over: [method]}
` + groupsDoc + ` Groups are the first columns of
the table, and n tells how many images each has. Claims are of all images.
` + scores.ExactDoc,
	Version:  5,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: append([]stages.Port{
		{Name: "values", Type: stages.Scores, Averages: true, Doc: "scores, of all cells to show"},
		{Name: "marks", Type: stages.TableType, Optional: true,
			Doc: "tests of differences, whose places are those of the table"},
		columnsPort,
	}, scores.ExactPorts("values", "")...),
	Outputs: []stages.Port{
		{Name: "table", Type: stages.TableType, Doc: "one row per combination of the row axes"},
		claims.Port,
		{Name: "answer", Type: stages.Text,
			Doc: "what became of claims, in words; empty, and not published, without claims"},
	},
	Facts: claims.AnswerFacts[TableParams],
	Defaults: TableParams{Statistic: "mean", Correction: holm, Exactly: scores.UsualExactly,
		Grouped: Grouped{Parts: usualParts}},
	Check: func(p TableParams, wired func(string) bool) error {
		if p.Mark != "" && !wired("marks") {
			return stages.BadField("mark", "mark is set, but the input marks isn't wired")
		}
		if p.Intervals && p.Statistic != "mean" {
			return stages.BadField("intervals", "intervals are those of means, and statistic is %s",
				p.Statistic)
		}
		if len(p.By) > 0 && wired("marks") {
			return stages.BadField("by", "marks are of all images, and not of groups: unwire marks, or use "+
				"report/leaderboard, whose marks are of each group")
		}
		if (p.Exact != "" || wired("exact")) && p.Statistic != "mean" {
			return stages.BadField("statistic", "of exact scores of some images the mean alone is "+
				"estimated: a table has no interval of a %s, which says how sure an estimate is", p.Statistic)
		}
		if err := errors.Join(p.Grouped.check(wired), p.CheckExactly(wired)); err != nil {
			return err
		}
		all := slices.Concat(p.Rows, p.Columns)
		for i, a := range all {
			if slices.Contains(all[:i], a) {
				return stages.BadField("columns", "duplicate axis %q in rows and columns", a)
			}
		}
		return nil
	},
	Run:   runTable,
	Hooks: func(TableParams) stages.Hooks { return stages.Hooks{Present: claims.Present} },
})

// meanDigits is the number of decimals of a mean.
const meanDigits = 4

func runTable(ctx context.Context, p TableParams, e *stages.Env) error {
	grouped, err := p.split(ctx, e, "values")
	if err != nil {
		return err
	}
	grouped.warn(e, stat.LeastPairs(level), "two methods")
	data, axes := grouped.data, axesOf(e.Ports["values"])
	rows, columns, err := p.layout(axes)
	if err != nil {
		return err
	}
	rows = slices.Concat(p.By, rows)
	cells, err := load(ctx, data)
	if err != nil {
		return err
	}
	exact, err := p.AddExact(ctx, e, "values", pointers(cells), p.By...)
	if err != nil {
		return err
	}
	grouped.warnInexact(e, pointers(cells))
	t := stages.Table{Title: p.Title, Keys: rows, Ranked: len(p.By) > 0} // groups have an order
	if t.Title == "" {
		t.Title = p.Statistic + " over " + stages.ItemsOf(data)
	}
	across, seeded := places(grouped.env.Order, data, columns), replicated(cells)
	if p.Title == "" && seeded {
		t.Title += overSeeds
	}
	t.Title += exact.Title()
	p.Intervals = p.Statistic == "mean" && (p.Intervals || len(across) == 1)
	t.Numbers = p.header(e, cells, columns, across, stages.ItemsOf(data))
	marks, err := readMarks(e.Ports["marks"], slices.Concat(rows, columns))
	if err != nil {
		return err
	}
	marked, err := p.marked(marks, across, t.Numbers)
	if err != nil {
		return err
	}
	for _, k := range marked {
		t.Numbers = append(t.Numbers, markColumn(t.Numbers[k].Name))
	}
	for _, ids := range places(grouped.env.Order, data, rows) {
		inRow := slices.DeleteFunc(slices.Clone(cells),
			func(c cell) bool { return !slices.Equal(pick(c.Coord, rows), ids) })
		row := stages.Row{Keys: ids, Numbers: p.numbers(inRow, columns, across, seeded)}
		for _, k := range marked {
			row.Numbers = append(row.Numbers, marks.at(placeOf(rows, ids), placeOf(columns, across[k])))
		}
		t.Rows = append(t.Rows, row)
	}
	e.Set("table", t.Encode())
	if len(p.By) > 0 && len(p.Claims) > 0 {
		if cells, err = load(ctx, e.Ports["values"]); err != nil {
			return err
		}
		if _, err = p.AddExact(ctx, e, "values", pointers(cells)); err != nil {
			return err
		}
	}
	return p.claimed(e, axes, pointers(cells), exact)
}

// header describes the columns of the numbers that numbers returns.
func (p TableParams) header(e *stages.Env, cells []cell, columns []string, across [][]string,
	items string) (list []stages.Column) {
	for _, ids := range across {
		name := strings.Join(ids, " ")
		if name == "" {
			name = p.Statistic
		}
		c := columnOf(name, cells, func(c *cell) bool { return slices.Equal(pick(c.Coord, columns), ids) })
		c.Label = columnLabel(e, columns, ids)
		list = append(list, c)
	}
	alone := len(across) == 1
	if p.Intervals {
		for _, c := range list[:len(across)] {
			list = append(list, endsOf(c, alone)...)
		}
	}
	counts := []stages.Column{{Name: "n", Unit: items}, {Name: "undefined", Unit: "scores"}}
	if replicated(cells) {
		for _, c := range list[:len(across)] {
			list = append(list, sdOf(c, alone))
		}
		counts = append(counts, stages.Column{Name: "seeds"})
	}
	return append(list, counts...)
}

// numbers returns the numbers of the cells in a row: the statistics across, the ends of their intervals, if
// seeded their deviations over seeds, how many scores are defined and undefined, and if seeded the seeds.
func (p TableParams) numbers(cells []cell, columns []string, across [][]string,
	seeded bool) (numbers []stages.Number) {
	least, undefined, seeds := -1, 0, 1
	var ends, deviations []stages.Number
	for _, ids := range across {
		x, low, high, sd := math.NaN(), math.NaN(), math.NaN(), math.NaN()
		for i := range cells {
			c := &cells[i]
			if !slices.Equal(pick(c.Coord, columns), ids) {
				continue
			}
			v, missing := c.Defined()
			x = summary(p.Statistic, v)
			if c.Exact != nil {
				x = c.Sample().Estimate()
			}
			if p.Intervals {
				_, low, high = c.Sample().Mean()
			}
			sd = c.SD(func(v []float64) float64 { return summary(p.Statistic, v) })
			undefined, seeds = undefined+missing, max(seeds, c.Seeds())
			if least < 0 || len(v) < least {
				least = len(v)
			}
		}
		numbers = append(numbers, stages.Number(x))
		if p.Intervals {
			ends = append(ends, stages.Number(low), stages.Number(high))
		}
		deviations = append(deviations, stages.Number(sd))
	}
	numbers = append(numbers, ends...)
	if seeded {
		numbers = append(numbers, deviations...)
	}
	numbers = append(numbers, stages.Number(max(least, 0)), stages.Number(undefined))
	if seeded {
		numbers = append(numbers, stages.Number(seeds))
	}
	return numbers
}

// claimed sets the outputs with the results of claims.
func (p TableParams) claimed(e *stages.Env, axes []string, all []*cell, exact *scores.Exactness) error {
	statistic := func(v []float64) float64 { return summary(p.Statistic, v) }
	results := claims.OfScores(all, axes, statistic, p.Statistic)
	results.Label, results.Holm = e.Label, p.Correction == holm
	outcomes, err := results.Test(p.List)
	if err != nil {
		return err
	}
	words := claims.MeansOver(results.Unit)
	words.More = "a larger " + p.Statistic
	text := outcomes.Answer(words)
	if text != "" {
		text += scores.Seeded(all) + exact.Sentence() + "\n"
	}
	e.Set("claims", outcomes.Table(claims.MeanColumn(all)).Encode())
	e.Set("answer", []byte(text))
	return nil
}

// endsOf describes the ends of a column's intervals; alone is set if it is the only column.
func endsOf(c stages.Column, alone bool) []stages.Column {
	// They also depend on the scores' spread.
	low := stages.Column{Name: c.Name + " low", Unit: c.Unit, Tolerance: 4 * c.Tolerance, Digits: meanDigits}
	high := low
	high.Name = c.Name + " high"
	if c.Label != "" {
		low.Label, high.Label = c.Label+" low", c.Label+" high"
	}
	if alone {
		low.Name, high.Name, low.Label, high.Label = "low", "high", "", ""
	}
	return []stages.Column{low, high}
}

// layout assigns the axes to rows and columns.
func (p *TableParams) layout(axes []string) (rows, columns []string, err error) {
	for _, a := range p.Rows {
		if _, err := oneAxis("rows", a, axes); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range p.Columns {
		if _, err := oneAxis("columns", a, axes); err != nil {
			return nil, nil, err
		}
	}
	rest := without(axes, slices.Concat(p.Rows, p.Columns)...)
	if len(p.Rows) > 0 && len(p.Columns) == 0 {
		return p.Rows, rest, nil
	}
	return slices.Concat(p.Rows, rest), p.Columns, nil
}

// columnOf describes a column by the measures that its cells have in common.
func columnOf(name string, cells []cell, belongs func(*cell) bool) stages.Column {
	col := stages.Column{Name: name, Digits: meanDigits}
	first := true
	for i := range cells {
		if !belongs(&cells[i]) {
			continue
		}
		m := cells[i].Measure
		if first {
			col.Unit, col.Direction, col.Variant, first = m.Unit, m.Direction, m.Variant, false
		}
		if col.Unit != m.Unit {
			col.Unit = ""
		}
		if col.Direction != m.Direction {
			col.Direction = stages.None
		}
		if col.Variant != m.Variant {
			col.Variant = stages.MixedVariants
		}
		col.Tolerance = max(col.Tolerance, m.Tolerance)
	}
	return col
}

func summary(statistic string, v []float64) float64 {
	if statistic == "mean" || len(v) == 0 {
		mean, _ := stat.Mean(v)
		return mean
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
