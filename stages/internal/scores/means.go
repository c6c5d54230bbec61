package scores

import (
	"errors"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

// Means are the means of a case over the images that have a score of every competitor that is present there:
// of every one with a defined score.
type Means struct {
	N         int       // number of these images
	Mean      []float64 // by competitor; NaN if it is absent or N is 0
	Quality   []float64 // how good the means are, as of [Case.QualitiesOf]; NaN where there is none
	Scores    []int     // by competitor: number of its scores, defined or not
	Undefined []int     // by competitor: number of undefined scores

	samples []interval.Sample // by competitor, of these images; none where it is absent
	first   *List             // the scores of the first that is present
	items   []int             // by image of samples: its place in first; nil where all are exact
}

// Means returns the means of the case, or an error if its scores have different directions or none, or if a
// mean isn't finite.
func (m *Case) Means() (Means, error) {
	k := len(m.Cells)
	c := Means{Mean: make([]float64, k), Quality: make([]float64, k), Scores: make([]int, k),
		Undefined: make([]int, k), samples: make([]interval.Sample, k)}
	var present []int
	var cells []*Cell
	for p, cell := range m.Cells {
		c.Mean[p], c.Quality[p] = math.NaN(), math.NaN()
		if cell == nil {
			continue
		}
		if d := cell.Measure.Direction; d == stages.None || d != m.Measure.Direction {
			return c, fmt.Errorf("scores of the directions %q and %q can't be compared",
				m.Measure.Direction, d)
		}
		_, c.Undefined[p] = cell.Defined()
		if c.Scores[p] = len(cell.Scores.Values); c.Undefined[p] < c.Scores[p] {
			present, cells = append(present, p), append(cells, cell)
		}
	}
	if len(cells) == 0 {
		return c, nil
	}
	var all []interval.Sample
	if all, c.items = common(cells); len(all) == 0 {
		return c, errors.New("the methods have exact scores of different " + cells[0].Items)
	}
	c.first = cells[0].Scores
	for i, quality := range m.QualitiesOf(all) {
		c.Quality[present[i]] = quality
	}
	for i, s := range all {
		c.samples[present[i]], c.N = s, s.Len()
		x := s.Estimate()
		// No exact score need be defined where cheap ones are: there is no mean then.
		if c.N > 0 && (math.IsInf(x, 0) || math.IsNaN(x) && s.Phases == nil) {
			return c, fmt.Errorf("a mean over %d scores isn't finite", c.N)
		}
		c.Mean[present[i]] = x
	}
	return c, nil
}

// common returns the scores of the images that have one of all cells, and which these are if only some have
// exact ones. It returns none if an image has exact scores of some cells alone.
func common(cells []*Cell) (all []interval.Sample, items []int) {
	if len(cells) == 0 {
		return nil, nil
	}
	if cells[0].Exact != nil {
		if all, items, ok := samples(cells...); ok {
			return all, items
		}
		return nil, nil
	}
	lists := make([]*List, len(cells))
	for i, c := range cells {
		lists[i] = c.Scores
	}
	for _, v := range Shared(lists) {
		all = append(all, interval.Sample{Exact: v})
	}
	return all, nil
}

// Rank returns the rank of a competitor, 1 for the best, shared by ties; 0 if it is absent.
func (c Means) Rank(competitor int) int {
	if math.IsNaN(c.Quality[competitor]) {
		return 0
	}
	rank := 1
	for _, x := range c.Quality {
		if x > c.Quality[competitor] {
			rank++
		}
	}
	return rank
}

// Present returns the competitors that have a mean.
func (c Means) Present() []int {
	var present []int
	for i, x := range c.Mean {
		if !math.IsNaN(x) {
			present = append(present, i)
		}
	}
	return present
}
