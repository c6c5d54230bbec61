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
func byRank(f stat.Fusion) []int {
	order := make([]int, len(f.Rank))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.Rank[a], f.Rank[b]) })
	return order
}

func rankingTable(p MetaRankParams, c *contest, r result) stages.Table {
	kappa := stages.Column{Unit: "log-odds", Direction: stages.Higher, Tolerance: kappaTolerance, Digits: 4}
	low, high := kappa, kappa
	kappa.Name, low.Name, high.Name = "kappa", "kappa low", "kappa high"
	t := stages.Table{
		Title: "Meta-Rank of " + p.Rank + c.exact.Title(), Ranked: true,
		Keys: []string{p.Rank},
		Numbers: []stages.Column{
			{Name: "rank", Direction: stages.Lower},
			kappa, low, high,
			{Name: "rank low", Direction: stages.Lower},
			{Name: "rank high", Direction: stages.Lower},
			{Name: "wins", Unit: "comparisons", Direction: stages.Higher, Digits: 1},
			{Name: "of", Unit: "comparisons"},
			{Name: "cases", Unit: "cases"},
			{Name: "n", Unit: c.items},
			{Name: "undefined", Unit: "scores"},
		},
	}
	for _, i := range r.order {
		won, all := r.won(i)
		cases, images := c.images(i)
		t.Rows = append(t.Rows, stages.Row{
			Keys: []string{c.methods[i]},
			Numbers: []stages.Number{
				stages.Number(r.Rank[i]), stages.Number(r.Kappa[i]), stages.Number(r.kappa[i].Low),
				stages.Number(r.kappa[i].High), stages.Number(r.rank[i].Low), stages.Number(r.rank[i].High),
				stages.Number(won), stages.Number(all), stages.Number(cases), stages.Number(images),
				stages.Number(c.undefined(i)),
			},
		})
	}
	t.Rows = append(t.Rows, unrankedRows(c, len(t.Numbers), 5)...)
	return t
}

// unrankedRows returns the rows of the methods that aren't ranked: undefined numbers, and in the last
// columns, which are counts, 0, except for the undefined scores in the last.
func unrankedRows(c *contest, columns, counts int) []stages.Row {
	var rows []stages.Row
	for _, o := range c.unranked {
		row := stages.Row{Keys: []string{o.id}, Numbers: make([]stages.Number, columns)}
		for i := range columns - counts {
			row.Numbers[i] = stages.Number(math.NaN())
		}
		row.Numbers[columns-1] = stages.Number(o.undefined)
		rows = append(rows, row)
	}
	return rows
}

func pairsTable(p MetaRankParams, c *contest, r result) stages.Table {
	t := stages.Table{
		Title: "How often one " + p.Rank + " beats another", Ranked: true,
		Keys: []string{p.Rank, "against"},
		Numbers: []stages.Column{
			{Name: "wins", Unit: "cases", Direction: stages.Higher, Digits: 1},
			{Name: "cases", Unit: "cases"},
			{Name: "share", Unit: "share", Direction: stages.Higher, Tolerance: kappaTolerance, Digits: 4},
			{Name: "logit", Unit: "log-odds", Direction: stages.Higher, Tolerance: kappaTolerance, Digits: 4},
		},
	}
	for _, i := range r.order {
		for _, k := range r.order {
			if i != k {
				t.Rows = append(t.Rows, stages.Row{
					Keys: []string{c.methods[i], c.methods[k]},
					Numbers: []stages.Number{stages.Number(r.Wins[i][k]),
						stages.Number(r.Wins[i][k] + r.Wins[k][i]), stages.Number(r.P[i][k]),
						stages.Number(r.Logit[i][k])},
				})
			}
		}
	}
	return t
}

func casesTable(p MetaRankParams, c *contest) stages.Table {
	mean := stages.Column{Name: "mean", Digits: 4}
	for i, m := range c.cases {
		if i == 0 {
			mean.Unit, mean.Direction, mean.Variant = m.measure.Unit, m.measure.Direction, m.measure.Variant
		}
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
		Title: "Every " + p.Rank + " in every case" + c.exact.Title(),
		Keys:  append(slices.Clone(c.axes), p.Rank),
		Numbers: []stages.Column{
			mean,
			{Name: "rank", Direction: stages.Lower},
			{Name: "n", Unit: c.items},
			{Name: "undefined", Unit: "scores"},
		},
	}
	for k, m := range c.cases {
		for i, method := range c.methods {
			if m.Scores[c.at[i]] == 0 {
				continue
			}
			row := stages.Row{Keys: append(slices.Clone(m.ids), method),
				Numbers: []stages.Number{stages.Number(m.Mean[c.at[i]]), stages.Number(m.Rank(c.at[i])),
					stages.Number(m.N), stages.Number(m.Undefined[c.at[i]])}}
			if !c.present(k, i) {
				row.Numbers[1], row.Numbers[2] = stages.Number(math.NaN()), 0
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
