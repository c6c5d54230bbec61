package claims

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

// OfScores makes the results that are means of cells over images, or another statistic of theirs. Two means
// are compared over the images that have a defined score of both, and equal ones are equal at the resolution
// of the scores; where there are none, or an id stands for different images, such as of mosaics that were
// made for either, each is of its own images, without a test. names are those of the statistic.
func OfScores(cells []*scores.Cell, axes []string, statistic func([]float64) float64,
	names ...string) *Results {
	r := &Results{Axes: axes, Names: names, Holm: true, Unit: itemsOf(cells)}
	of := func(s interval.Sample) float64 {
		if s.Phases != nil {
			return s.Estimate()
		}
		return statistic(s.Exact)
	}
	for i := range cells {
		r.Add(scores.Pick(cells[i].Coord, axes), of(cells[i].Sample()))
	}
	r.Direction = func(i int) stages.Direction { return cells[i].Measure.Direction }
	compare := func(x, y interval.Sample, paired bool) Comparison {
		c := Comparison{X: of(x), Y: of(y), P: math.NaN()}
		tied := stat.Tied([]float64{c.X, c.Y}, stat.Resolution(x.Cheap, x.Exact, y.Cheap, y.Exact))
		if c.X, c.Y = tied[0], tied[1]; paired {
			c.N, c.P = x.Len(), stat.WilcoxonOf(scores.Differences(x, y)).P
		}
		return c
	}
	r.Compare = func(i, k int) Comparison {
		if x, y, ok := scores.Paired(cells[i], cells[k]); ok {
			return compare(x, y, true)
		}
		x, y := cells[i].Sample(), cells[k].Sample()
		c := compare(x, y, false)
		c.Unpaired = x.Len() > 0 && y.Len() > 0
		return c
	}
	r.Against = func(i int, limit float64) Comparison {
		x := cells[i].Sample()
		y := x.Map(func(float64) float64 { return limit })
		c := compare(x, y, x.Len() > 0)
		if x.Len() == 0 {
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
