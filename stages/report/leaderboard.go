package report

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// LeaderboardParams are the parameters of [Leaderboard].
type LeaderboardParams struct {
	Rank  string `yaml:"rank" axis:"scores" doc:"the axis to compare"`
	Title string `yaml:"title" doc:"a title"`
}

// confidence is the level of all intervals.
const confidence = 0.95

// Leaderboard ranks the ids of one axis. Every combination of the other axes is a case with its own ranks, by
// the mean over the images whose score is defined for every competitor; the mean rank over the cases orders
// the table. Intervals are Student's, at 95 %; those of differences are paired by image.
var Leaderboard = stages.New(stages.Def[LeaderboardParams]{
	Name: "report/leaderboard",
	Doc: `ranking of methods, in every case and over all cases

A case is a combination of the other axes. Competitors are ranked by their mean over
the images that have a score of every competitor (1 is best, ties share a rank); cases
without a direction or with a missing competitor are shown but not ranked. details has,
for every case and competitor, the mean over all its defined scores with a 95 %
interval, and its distance to the best, paired by image.`,
	Version:  3,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: []stages.Port{{Name: "scores", Type: stages.Scores,
		Doc: "scores of all competitors in all cases"}},
	Outputs: []stages.Port{
		{Name: "leaderboard", Type: stages.TableType,
			Doc: "one row per competitor, best first; one column per case"},
		{Name: "details", Type: stages.TableType, Doc: "one row per case and competitor"},
		{Name: "answer", Type: stages.Text, Doc: "the result in words"},
	},
	Defaults: LeaderboardParams{Rank: "method"},
	Run:      runLeaderboard,
})

// A scoreCase is one case with the scores of all competitors.
type scoreCase struct {
	ids     []string
	cells   []*cell // by competitor; nil if missing
	measure stages.Measure
	ranked  bool
	shared  [][]float64 // by competitor: scores of the images that all have
	rank    []float64   // by competitor; NaN if not ranked
}

func (m *scoreCase) name() string { return strings.Join(m.ids, " ") }

// A board holds everything that the outputs show.
type board struct {
	axis        string
	others      []string
	competitors []string
	cases       []scoreCase
	mean        []float64 // mean rank by competitor, NaN if no case is ranked
	first       []int     // number of cases in which no competitor ranks better
	order       []int     // competitors, best first
	ranked      int       // number of ranked cases
}

func runLeaderboard(ctx context.Context, p LeaderboardParams, e *stages.Env) error {
	data := e.Ports["scores"]
	axis, err := oneAxis("rank", p.Rank, axesOf(data))
	if err != nil {
		return err
	}
	cells, err := load(ctx, data)
	if err != nil {
		return err
	}
	b := &board{axis: axis, others: without(axesOf(data), axis)}
	for _, ids := range places(e.Order, data, []string{axis}) {
		b.competitors = append(b.competitors, ids[0])
	}
	for _, ids := range places(e.Order, data, b.others) {
		m := scoreCase{ids: ids, cells: make([]*cell, len(b.competitors))}
		for i := range cells {
			if slices.Equal(pick(cells[i].Coord, b.others), ids) {
				m.cells[slices.Index(b.competitors, idOn(cells[i].Coord, axis))] = &cells[i]
			}
		}
		m.rankCompetitors()
		b.cases = append(b.cases, m)
	}
	b.meanRanks()
	e.Set("leaderboard", b.table(p.Title).Encode())
	e.Set("details", b.details().Encode())
	e.Set("answer", []byte(b.answer()))
	e.SetFacts("answer", stages.Facts{"ext": "md"})
	return nil
}

// rankCompetitors ranks the competitors of one case.
func (m *scoreCase) rankCompetitors() {
	m.rank = make([]float64, len(m.cells))
	for i := range m.rank {
		m.rank[i] = math.NaN()
	}
	m.ranked = true
	for _, c := range m.cells {
		if c == nil {
			m.ranked = false
			continue
		}
		if m.measure == (stages.Measure{}) {
			m.measure = c.Measure
		}
		if c.Measure.Direction != m.measure.Direction || c.Measure.Direction == stages.None ||
			len(m.cells) < 2 {
			m.ranked = false
		}
	}
	if !m.ranked {
		return
	}
	lists := make([]*scores.List, len(m.cells))
	for i, c := range m.cells {
		lists[i] = c.Scores
	}
	m.shared = scores.Shared(lists)
	if len(m.shared[0]) == 0 {
		m.ranked = false
		return
	}
	quality := make([]float64, len(m.cells))
	for i, v := range m.shared {
		quality[i], _ = stat.Mean(v)
		if m.measure.Direction == stages.Higher {
			quality[i] = -quality[i]
		}
	}
	m.rank = stat.Ranks(quality)
}

// best returns the competitor that ranks first, ties in the experiment's order, and the second.
func (m *scoreCase) best() (first, second int) {
	order := make([]int, len(m.rank))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.rank[a], m.rank[b]) })
	return order[0], order[1]
}

// lead returns how much better a is than b, over the images that all competitors share, with its interval.
func (m *scoreCase) lead(a, b int) (mean, low, high float64) {
	d := make([]float64, len(m.shared[a]))
	for i := range d {
		d[i] = m.shared[a][i] - m.shared[b][i]
		if m.measure.Direction == stages.Lower {
			d[i] = -d[i]
		}
	}
	return stat.MeanInterval(d, confidence)
}

func (b *board) meanRanks() {
	b.mean, b.first = make([]float64, len(b.competitors)), make([]int, len(b.competitors))
	for p := range b.competitors {
		b.order = append(b.order, p)
	}
	for i := range b.cases {
		m := &b.cases[i]
		if !m.ranked {
			continue
		}
		b.ranked++
		for p, r := range m.rank {
			b.mean[p] += r
			if r == slices.Min(m.rank) {
				b.first[p]++
			}
		}
	}
	for p := range b.mean {
		b.mean[p] /= float64(b.ranked) // NaN if no case is ranked
	}
	slices.SortStableFunc(b.order, func(p, q int) int { return cmp.Compare(b.mean[p], b.mean[q]) })
}

func (b *board) table(title string) stages.Table {
	if title == "" {
		title = "Leaderboard of " + b.axis
	}
	t := stages.Table{Title: title, Ranked: true, Keys: []string{b.axis}, Numbers: []stages.Column{
		{Name: "mean rank", Direction: stages.Lower, Digits: 2},
		{Name: "first", Unit: "cases", Direction: stages.Higher},
	}}
	for i := range b.cases {
		m := &b.cases[i]
		name := m.name()
		if name == "" {
			name = "mean"
		}
		var cells []cell
		for _, c := range m.cells {
			if c != nil {
				cells = append(cells, *c)
			}
		}
		t.Numbers = append(t.Numbers, columnOf(name, cells, func(*cell) bool { return true }))
	}
	t.Numbers = append(t.Numbers, stages.Column{Name: "n", Unit: "images"},
		stages.Column{Name: "undefined", Unit: "scores"})
	for _, p := range b.order {
		row := stages.Row{Keys: []string{b.competitors[p]},
			Numbers: []stages.Number{stages.Number(b.mean[p]), stages.Number(b.first[p])}}
		least, undefined := -1, 0
		for i := range b.cases {
			c := b.cases[i].cells[p]
			if c == nil {
				row.Numbers = append(row.Numbers, stages.Number(math.NaN()))
				continue
			}
			v, missing := c.Defined()
			mean, _ := stat.Mean(v)
			row.Numbers = append(row.Numbers, stages.Number(mean))
			undefined += missing
			if least < 0 || len(v) < least {
				least = len(v)
			}
		}
		row.Numbers = append(row.Numbers, stages.Number(max(least, 0)), stages.Number(undefined))
		t.Rows = append(t.Rows, row)
	}
	return t
}

// details returns the table of all cases and competitors.
func (b *board) details() stages.Table {
	tolerance := 0.0
	for i := range b.cases {
		tolerance = max(tolerance, b.cases[i].measure.Tolerance)
	}
	// The ends of an interval also depend on the scores' spread.
	wide := 4 * tolerance
	t := stages.Table{Title: "All cases", Keys: append(slices.Clone(b.others), b.axis),
		Numbers: []stages.Column{
			{Name: "mean", Tolerance: tolerance, Digits: meanDigits},
			{Name: "low", Tolerance: wide, Digits: meanDigits},
			{Name: "high", Tolerance: wide, Digits: meanDigits},
			{Name: "n", Unit: "images"},
			{Name: "undefined", Unit: "scores"},
			{Name: "rank", Direction: stages.Lower, Digits: 1},
			{Name: "behind", Direction: stages.Lower, Tolerance: 2 * tolerance, Digits: meanDigits},
			{Name: "behind low", Tolerance: wide, Digits: meanDigits},
			{Name: "behind high", Tolerance: wide, Digits: meanDigits},
			{Name: "paired n", Unit: "images"},
		}}
	for i := range b.cases {
		m := &b.cases[i]
		for p, c := range m.cells {
			if c == nil {
				continue
			}
			v, undefined := c.Defined()
			mean, low, high := stat.MeanInterval(v, confidence)
			behind, from, to, n := math.NaN(), math.NaN(), math.NaN(), 0
			if m.ranked {
				n = len(m.shared[p])
				if first, _ := m.best(); first == p {
					behind, from, to = 0, 0, 0
				} else {
					behind, from, to = m.lead(first, p)
				}
			}
			row := stages.Row{Keys: append(slices.Clone(m.ids), b.competitors[p])}
			for _, x := range []float64{mean, low, high, float64(len(v)), float64(undefined), m.rank[p],
				behind, from, to, float64(n)} {
				row.Numbers = append(row.Numbers, stages.Number(x))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
