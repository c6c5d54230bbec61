package fuse

import (
	"cmp"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/stat"
)

// κ is computed from integer numbers of wins; only the logarithm may differ between machines.
const kappaTolerance = 1e-9

// byRank returns the indices of the methods, best first, ties by name.
func byRank(f stat.Fusion, methods []string) []int {
	order := make([]int, len(methods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.Rank[a], f.Rank[b]) })
	return order
}

// won returns the number of pairwise comparisons that a method won, over all cases and opponents.
func won(f stat.Fusion, p int) float64 {
	sum := 0.0
	for _, w := range f.Wins[p] {
		sum += w
	}
	return sum
}

func rankingTable(p MetaRankParams, c *contest, f stat.Fusion, order []int) stages.Table {
	t := stages.Table{
		Title: "Meta-Rank of " + p.Rank, Ranked: true,
		Keys: []string{p.Rank},
		Numbers: []stages.Column{
			{Name: "rank", Direction: stages.Lower},
			{Name: "kappa", Unit: "log-odds", Direction: stages.Higher, Tolerance: kappaTolerance, Digits: 4},
			{Name: "wins", Unit: "duels", Direction: stages.Higher, Digits: 1},
			{Name: "duels", Unit: "duels"},
			{Name: "cases", Unit: "cases"},
			{Name: "n", Unit: "images"},
			{Name: "undefined", Unit: "scores"},
		},
	}
	images := 0
	for _, m := range c.complete {
		images += m.n
	}
	for _, i := range order {
		undefined := 0
		for _, m := range c.complete {
			undefined += m.undefined[i]
		}
		t.Rows = append(t.Rows, stages.Row{
			Keys: []string{c.methods[i]},
			Numbers: []stages.Number{
				stages.Number(f.Rank[i]), stages.Number(f.Kappa[i]), stages.Number(won(f, i)),
				stages.Number(len(c.complete) * (len(c.methods) - 1)), stages.Number(len(c.complete)),
				stages.Number(images), stages.Number(undefined),
			},
		})
	}
	for _, s := range c.unscored {
		none := stages.Number(math.NaN())
		t.Rows = append(t.Rows,
			stages.Row{Keys: []string{s.method},
				Numbers: []stages.Number{none, none, none, 0, 0, 0, stages.Number(s.scores)}})
	}
	return t
}

func pairsTable(p MetaRankParams, c *contest, f stat.Fusion, order []int) stages.Table {
	t := stages.Table{
		Title: "How often one " + p.Rank + " beats another", Ranked: true,
		Keys: []string{p.Rank, "against"},
		Numbers: []stages.Column{
			{Name: "wins", Unit: "cases", Direction: stages.Higher, Digits: 1},
			{Name: "share", Unit: "share", Direction: stages.Higher, Tolerance: kappaTolerance, Digits: 4},
			{Name: "logit", Unit: "log-odds", Direction: stages.Higher, Tolerance: kappaTolerance, Digits: 4},
		},
	}
	for _, i := range order {
		for _, k := range order {
			if i != k {
				t.Rows = append(t.Rows, stages.Row{
					Keys: []string{c.methods[i], c.methods[k]},
					Numbers: []stages.Number{stages.Number(f.Wins[i][k]), stages.Number(f.P[i][k]),
						stages.Number(f.Logit[i][k])},
				})
			}
		}
	}
	return t
}

func casesTable(p MetaRankParams, c *contest) stages.Table {
	mean := stages.Column{Name: "mean", Unit: c.complete[0].measure.Unit,
		Direction: c.complete[0].measure.Direction,
		Variant:   c.complete[0].measure.Variant, Digits: 4}
	for _, m := range c.complete {
		mean.Tolerance = math.Max(mean.Tolerance, m.measure.Tolerance)
		if m.measure.Unit != mean.Unit {
			mean.Unit = ""
		}
		if m.measure.Direction != mean.Direction {
			mean.Direction = stages.None
		}
		if m.measure.Variant != mean.Variant {
			mean.Variant = ""
		}
	}
	t := stages.Table{
		Title: "Every " + p.Rank + " in every case",
		Keys:  append(slices.Clone(c.axes), p.Rank),
		Numbers: []stages.Column{
			mean,
			{Name: "rank", Direction: stages.Lower},
			{Name: "n", Unit: "images"},
			{Name: "undefined", Unit: "scores"},
		},
	}
	for _, m := range c.complete {
		for i, method := range c.methods {
			var keys []string
			for _, co := range m.coord {
				keys = append(keys, co.ID)
			}
			t.Rows = append(t.Rows, stages.Row{
				Keys: append(keys, method),
				Numbers: []stages.Number{stages.Number(m.mean[i]), stages.Number(m.rank(i)),
					stages.Number(m.n), stages.Number(m.undefined[i])},
			})
		}
	}
	return t
}
