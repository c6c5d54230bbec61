package report

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

// LeaderboardParams are the parameters of [Leaderboard].
type LeaderboardParams struct {
	Rank  string `yaml:"rank" axis:"scores" doc:"the axis to compare"`
	Title string `yaml:"title" doc:"a title"`
	// The correction also applies to marks.
	Correction string `yaml:"correction" key:"added" doc:"the correction of p for the number of pairs in a case; none marks as stats/wilcoxon does against the best without correction" choices:"holm|none"`
	Family     string `yaml:"family" key:"added" doc:"the tests for whose number holm corrects: all pairs of a case, or those with its best alone, which needs fewer images and has more false alarms, since the scores chose the best: of equal methods in 9 of 100 experiments, not 5" choices:"pairs|best"`
	scores.Exactly
	claims.List
	Grouped
}

// Validate refuses claims and precisions.
func (p LeaderboardParams) Validate() error {
	return errors.Join(p.List.Validate(), p.Exactly.Validate())
}

// Known rejects claims that name unknown ids.
func (p LeaderboardParams) Known(ids map[string][]string) error { return p.List.Known(ids, meanName) }

// meanName is the name of the number in claims about means over images.
const meanName = "mean"

const holm = "holm"

// level is the significance level of the tests in leaderboards.
const level = 0.05

// Leaderboard ranks the ids of one axis. Every combination of the other axes is a case with its own ranks,
// by the mean over the images whose score is defined for every competitor; the mean rank over the cases
// orders the table. Intervals are computed by package interval; intervals of differences are paired by
// image.
var Leaderboard = stages.New(stages.Def[LeaderboardParams]{
	Name: "report/leaderboard",
	Doc: `ranking of methods, in every case and over all cases

A case is a combination of the other axes. Competitors are ranked by their mean over
the images that have a score of every competitor (1 is best, ties share a rank); cases
without a direction or with a missing competitor are shown but not ranked. Who can't be
told apart from the best of a case is marked there: by Wilcoxon's signed-rank test (1945)
of the images that both have, at 0.05, corrected by Holm (1979) for all pairs in the case,
with family: best for the comparisons with its best alone, or with correction: none not at
all. Competitors with equal scores in all cases are
reported. Claims compare means over the images that both have, by the same test. details
has, for every case and competitor, the mean over all its defined scores with its
interval, the mean over the common images, and the distance to the best, paired by
image. Intervals are bootstrap intervals at 95 % over images (BCa; Efron 1987). Of
seeds, as axes of replicates, every image counts with its mean over them, and sd is the
standard deviation over seeds of each seed's mean: shown as mean ± sd.
` + interval.Small + groupsDoc + ` A group is a case like those
of other axes, with ranks of its own; the answer tells how many images each has. Claims
are of all images.
` + scores.ExactDoc,
	Version:  9,
	Relation: stages.Whole,
	Ordered:  true,
	Inputs: append([]stages.Port{
		{Name: "scores", Type: stages.Scores, Averages: true,
			Doc: "scores of all competitors in all cases"},
		columnsPort,
	}, scores.ExactPorts("scores", "rank")...),
	Outputs: []stages.Port{
		{Name: "leaderboard", Type: stages.TableType,
			Doc: "one row per competitor, best first; one column per case"},
		{Name: "details", Type: stages.TableType, Doc: "one row per case and competitor"},
		claims.Port,
		claims.AnswerPort,
	},
	Defaults: LeaderboardParams{Rank: "method", Correction: holm, Family: scores.Pairs,
		Exactly: scores.UsualExactly, Grouped: Grouped{Parts: usualParts}},
	Check: func(p LeaderboardParams, wired func(string) bool) error {
		return errors.Join(p.Grouped.check(wired), p.CheckExactly(wired))
	},
	Run: runLeaderboard,
	Hooks: func(p LeaderboardParams) stages.Hooks {
		return stages.Hooks{Power: p.power, Marks: p.family("", 0).String(), Present: p.present}
	},
})

// A scoreCase is one case with its ranks.
type scoreCase struct {
	*scores.Case
	ranked bool
	shared []interval.Sample // by competitor: scores of the images that all competitors have
	rank   []float64         // by competitor; NaN if not ranked
	p      [][]float64       // of every two competitors, corrected; nil if not ranked
}

// A board holds the contents of all outputs.
type board struct {
	env         *stages.Env
	axis        string
	others      []string
	items       string // what has scores: "images"
	competitors []string
	names       []string // of the competitors
	cases       []scoreCase
	mean        []float64 // mean rank by competitor, NaN if no case is ranked
	first       []int     // number of cases in which no competitor ranks better
	order       []int     // competitors, best first
	ranked      int       // number of ranked cases
	family      scores.Family
	twins       string // a sentence on competitors with equal scores, "" without any
	seeds       string // a sentence on the seeds over which scores are averaged, "" without any
	exact       *scores.Exactness
}

func runLeaderboard(ctx context.Context, p LeaderboardParams, e *stages.Env) error {
	grouped, err := p.split(ctx, e, "scores")
	if err != nil {
		return err
	}
	c, err := scores.NewContest(ctx, grouped.env.Order, grouped.env.Label, grouped.data, "rank", p.Rank)
	if err != nil {
		return err
	}
	whole := c // of all images
	if len(p.By) > 0 {
		whole, err = scores.NewContest(ctx, e.Order, e.Label, e.Ports["scores"], "rank", p.Rank)
		if err != nil {
			return err
		}
	}
	b := &board{env: grouped.env, axis: c.Axis, others: c.Others, items: c.Items, competitors: c.Competitors,
		names: c.Names, family: p.family(c.Axis, len(c.Competitors)), seeds: c.Seeded()}
	grouped.warn(e, b.family.Least(), english.Count(len(c.Competitors), c.Axis))
	if b.exact, err = p.AddExact(ctx, e, "scores", c.Cells(), p.By...); err != nil {
		return err
	}
	if len(p.By) > 0 {
		if _, err = p.AddExact(ctx, e, "scores", whole.Cells()); err != nil {
			return err
		}
		grouped.warnInexact(e, c.Cells())
	}
	b.twins = scores.Sentence(c.Twins(), c.Items, func(i int) string { return c.Names[i] })
	results := claims.OfScores(whole.Cells(), whole.Axes(), claims.Mean, meanName)
	results.Label, results.Holm = e.Label, b.family.Holm
	outcomes, err := results.Test(p.List)
	if err != nil {
		return err
	}
	for i := range c.Cases {
		m := scoreCase{Case: &c.Cases[i]}
		m.rankCompetitors(b.family)
		m.grew(b.exact)
		b.cases = append(b.cases, m)
	}
	b.meanRanks()
	e.Set("leaderboard", b.table(p.Title).Encode())
	e.Set("details", b.details().Encode())
	text := b.answer()
	if grouped.sizes != "" {
		text += "\n" + grouped.sizes + "\n"
	}
	if first := outcomes.Answer(claims.MeansOver(c.Items)); first != "" {
		text = first + "\n\n" + text
	}
	e.Set("claims", outcomes.Table(claims.MeanColumn(whole.Cells())).Encode())
	e.Set("answer", []byte(text))
	e.SetFacts("answer", stages.Facts{"ext": "md"})
	return nil
}

// rankCompetitors ranks the competitors of one case, and tests which of them differ significantly.
func (m *scoreCase) rankCompetitors(f scores.Family) {
	m.shared = m.Samples()
	m.ranked = m.Comparable && len(m.Cells) > 1 && m.shared[0].Len() > 0 &&
		!slices.ContainsFunc(m.shared, func(s interval.Sample) bool { return math.IsNaN(s.Estimate()) })
	if !m.ranked {
		m.rank = slices.Repeat([]float64{math.NaN()}, len(m.Cells))
		return
	}
	worse := m.QualitiesOf(m.shared)
	for i := range worse {
		worse[i] = -worse[i]
	}
	m.rank = stat.Ranks(worse)
	m.p, _ = m.Pairwise(f.Holm)
	if f.Holm && f.Against == scores.Best {
		first, _ := m.best()
		for other, p := range m.HolmAgainst(first) {
			m.p[first][other], m.p[other][first] = p, p
		}
	}
}

// alike reports whether two competitors of a ranked case don't differ significantly.
func (m *scoreCase) alike(a, b int) bool { return !(m.p[a][b] <= level) }

// mark returns 1 for the best competitor, if there is one, and for those that don't differ significantly
// from it.
func (m *scoreCase) mark(p int) float64 {
	first, _ := m.best()
	for other := range m.p {
		if other != first && (p == other || p == first) && m.alike(first, other) {
			return 1
		}
	}
	return 0
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

// lead returns by how much a is better than b, over the images that all competitors share, with its
// interval.
func (m *scoreCase) lead(a, b int) (mean, low, high float64) {
	return m.ahead(a, b).Mean()
}

// ahead returns by how much a is better than b.
func (m *scoreCase) ahead(a, b int) interval.Sample {
	if m.Measure.Direction == stages.Lower {
		a, b = b, a
	}
	return m.shared[a].Minus(m.shared[b])
}

// grew notes how much the intervals of leads have grown.
func (m *scoreCase) grew(x *scores.Exactness) {
	if !m.ranked || x == nil {
		return
	}
	first, _ := m.best()
	for other := range m.shared {
		x.Grew(m.ahead(first, other))
	}
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
		if b.seeded() {
			title += overSeeds
		}
	}
	title += b.exact.Title()
	t := stages.Table{Title: title, Ranked: true, Keys: []string{b.axis}, Numbers: []stages.Column{
		{Name: "mean rank", Direction: stages.Lower, Digits: 2},
		{Name: "first", Unit: "cases", Direction: stages.Higher},
	}}
	alone := len(b.cases) == 1
	for i := range b.cases {
		m := &b.cases[i]
		name := strings.Join(m.IDs, " ")
		if name == "" {
			name = "mean"
		}
		var cells []cell
		for _, c := range m.Cells {
			if c != nil {
				cells = append(cells, *c)
			}
		}
		col := columnOf(name, cells, func(*cell) bool { return true })
		col.Label = columnLabel(b.env, b.others, m.IDs)
		t.Numbers = append(t.Numbers, col)
		if m.ranked {
			t.Numbers = append(t.Numbers, stages.Column{Name: name + " not confirmed", Marks: name,
				Unit: "the best, and those that can't be told apart from it"})
		}
		if alone {
			t.Numbers = append(t.Numbers, endsOf(col, true)...)
		}
		if m.seeded() {
			t.Numbers = append(t.Numbers, sdOf(col, alone))
		}
	}
	t.Numbers = append(t.Numbers, stages.Column{Name: "n", Unit: b.items},
		stages.Column{Name: "undefined", Unit: "scores"})
	if b.seeded() {
		t.Numbers = append(t.Numbers, stages.Column{Name: "seeds"})
	}
	for _, p := range b.order {
		t.Rows = append(t.Rows, b.row(p))
	}
	return t
}

// row returns a competitor's row of the table.
func (b *board) row(p int) stages.Row {
	alone := len(b.cases) == 1
	row := stages.Row{Keys: []string{b.competitors[p]},
		Numbers: []stages.Number{stages.Number(b.mean[p]), stages.Number(b.first[p])}}
	least, undefined, seeds := -1, 0, 1
	for i := range b.cases {
		m := &b.cases[i]
		x := []float64{math.NaN()}
		var v interval.Sample
		missing := 0
		if m.Cells[p] != nil {
			v = m.Cells[p].Sample()
			_, missing = m.Cells[p].Defined()
		}
		mean, low, high := v.Mean()
		x[0] = mean
		if m.ranked {
			x = append(x, m.mark(p))
		}
		if alone {
			x = append(x, low, high)
		}
		if m.seeded() {
			x = append(x, m.sd(p))
		}
		for _, x := range x {
			row.Numbers = append(row.Numbers, stages.Number(x))
		}
		if m.Cells[p] == nil {
			continue
		}
		undefined, seeds = undefined+missing, max(seeds, m.Cells[p].Seeds())
		if n := v.Len(); least < 0 || n < least {
			least = n
		}
	}
	row.Numbers = append(row.Numbers, stages.Number(max(least, 0)), stages.Number(undefined))
	if b.seeded() {
		row.Numbers = append(row.Numbers, stages.Number(seeds))
	}
	return row
}

// seeded reports whether scores of some case are averaged over seeds.
func (b *board) seeded() bool {
	return slices.ContainsFunc(b.cases, func(m scoreCase) bool { return m.seeded() })
}

// seeded reports whether scores of the case are averaged over seeds.
func (m *scoreCase) seeded() bool {
	return slices.ContainsFunc(m.Cells, func(c *cell) bool { return c != nil && c.Replicates != nil })
}

// sd returns the standard deviation over seeds of a competitor's mean, NaN without seeds.
func (m *scoreCase) sd(p int) float64 {
	if m.Cells[p] == nil {
		return math.NaN()
	}
	return m.Cells[p].SD(func(v []float64) float64 { return summary("mean", v) })
}

// details returns the table of all cases and competitors.
func (b *board) details() stages.Table {
	tolerance := 0.0
	for i := range b.cases {
		tolerance = max(tolerance, b.cases[i].Measure.Tolerance)
	}
	// The ends of an interval also depend on the scores' spread.
	wide := 4 * tolerance
	pTolerance := 0.0
	if tolerance > 0 { // another machine may swap the ranks of almost equal differences
		pTolerance = 0.02
	}
	t := stages.Table{Title: "All cases", Keys: append(slices.Clone(b.others), b.axis),
		Numbers: []stages.Column{
			{Name: "mean", Tolerance: tolerance, Digits: meanDigits},
			{Name: "low", Tolerance: wide, Digits: meanDigits},
			{Name: "high", Tolerance: wide, Digits: meanDigits},
			{Name: "n", Unit: b.items},
			{Name: "undefined", Unit: "scores"},
			{Name: "rank", Direction: stages.Lower, Digits: 1},
			{Name: "behind", Direction: stages.Lower, Tolerance: 2 * tolerance, Digits: meanDigits},
			{Name: "behind low", Tolerance: wide, Digits: meanDigits},
			{Name: "behind high", Tolerance: wide, Digits: meanDigits},
			{Name: "common mean", Tolerance: tolerance, Digits: meanDigits},
			{Name: "common n", Unit: b.items},
			{Name: "p", Tolerance: pTolerance, Digits: meanDigits},
			{Name: "p n", Unit: b.items},
		}}
	for i := range b.cases {
		m := &b.cases[i]
		for p, c := range m.Cells {
			if c == nil {
				continue
			}
			_, undefined := c.Defined()
			v := c.Sample()
			mean, low, high := v.Mean()
			behind, from, to, common, n := math.NaN(), math.NaN(), math.NaN(), math.NaN(), 0
			against, pairs := math.NaN(), 0
			if m.ranked {
				common, n = m.shared[p].Estimate(), m.shared[p].Len()
				if first, _ := m.best(); first == p {
					behind, from, to = 0, 0, 0
				} else {
					behind, from, to = m.lead(first, p)
					against, pairs = m.p[p][first], m.Sampled(p, first).Len()
				}
			}
			row := stages.Row{Keys: append(slices.Clone(m.IDs), b.competitors[p])}
			for _, x := range []float64{mean, low, high, float64(v.Len()), float64(undefined), m.rank[p],
				behind, from, to, common, float64(n), against, float64(pairs)} {
				row.Numbers = append(row.Numbers, stages.Number(x))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
