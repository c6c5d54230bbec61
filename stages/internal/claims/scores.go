package claims

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
)

// OfScores makes the results that are means of cells over images, or another statistic of theirs. Two means
// are compared over the images that have a defined score of both, and equal ones are equal at the resolution
// of the scores; where there are none, or an id stands for different images, such as of mosaics that were
// made for either, each is of its own images, without a test. names are those of the statistic.
func OfScores(cells []*scores.Cell, axes []string, statistic func([]float64) float64,
	names ...string) *Results {
	r := &Results{Axes: axes, Names: names, Holm: true, Unit: itemsOf(cells)}
	for i := range cells {
		v, _ := cells[i].Defined()
		r.Add(scores.Pick(cells[i].Coord, axes), statistic(v))
	}
	r.Direction = func(i int) stages.Direction { return cells[i].Measure.Direction }
	compare := func(x, y []float64, paired bool) Comparison {
		c := Comparison{X: statistic(x), Y: statistic(y), P: math.NaN()}
		tied := stat.Tied([]float64{c.X, c.Y}, stat.Resolution(x, y))
		if c.X, c.Y = tied[0], tied[1]; paired {
			c.N, c.P = len(x), stat.Wilcoxon(stat.Differences(x, y)).P
		}
		return c
	}
	r.Compare = func(i, k int) Comparison {
		if a, b := cells[i].Scores, cells[k].Scores; !scores.Mixed(a, b) {
			if both := scores.Shared([]*scores.List{a, b}); len(both[0]) > 0 {
				return compare(both[0], both[1], true)
			}
		}
		x, _ := cells[i].Defined()
		y, _ := cells[k].Defined()
		c := compare(x, y, false)
		c.Unpaired = len(x) > 0 && len(y) > 0
		return c
	}
	r.Against = func(i int, limit float64) Comparison {
		x, _ := cells[i].Defined()
		y := make([]float64, len(x))
		for k := range y {
			y[k] = limit
		}
		c := compare(x, y, len(x) > 0)
		if len(x) == 0 {
			c.Y = limit
		}
		return c
	}
	return r
}

// itemsOf says what the items of cells are.
func itemsOf(cells []*scores.Cell) string {
	if len(cells) == 0 {
		return stages.ItemsOf(nil)
	}
	return cells[0].Items
}

// Mean is the usual statistic.
func Mean(v []float64) float64 {
	mean, _ := stat.Mean(v)
	return mean
}

// MeanColumn describes the numbers of claims about the means of cells, and within which p-values count as
// reproduced: on another machine two almost equal scores may change places.
func MeanColumn(cells []*scores.Cell) (number stages.Column, pTolerance float64) {
	number.Digits = meanDigits
	for i, c := range cells {
		if i == 0 {
			number.Unit = c.Measure.Unit
		} else if number.Unit != c.Measure.Unit {
			number.Unit = ""
		}
		if number.Tolerance = max(number.Tolerance, c.Measure.Tolerance); c.Measure.ItemTolerance > 0 {
			pTolerance = 0.02
		}
	}
	return number, pTolerance
}
