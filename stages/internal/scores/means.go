package scores

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
)

// Means are the means of a case over the images that have a score of every competitor that is present there:
// of every one with a defined score.
type Means struct {
	N         int       // number of these images
	Mean      []float64 // by competitor; NaN if it is absent or N is 0
	Quality   []float64 // how good the means are, as of [Case.Qualities]; NaN where there is none
	Scores    []int     // by competitor: number of its scores, defined or not
	Undefined []int     // by competitor: number of undefined scores
}

// Means returns the means of the case, or an error if its scores have different directions or none, or if a
// mean isn't finite.
func (m *Case) Means() (Means, error) {
	k := len(m.Cells)
	c := Means{Mean: make([]float64, k), Quality: make([]float64, k), Scores: make([]int, k),
		Undefined: make([]int, k)}
	var present []int
	var lists []*List
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
			present, lists = append(present, p), append(lists, cell.Scores)
		}
	}
	if len(lists) > 0 {
		all := Shared(lists)
		for i, quality := range m.Qualities(all) {
			c.Quality[present[i]] = quality
		}
		for i, shared := range all {
			sum := 0.0
			for _, x := range shared {
				sum += x
			}
			c.N = len(shared)
			if c.Mean[present[i]] = sum / float64(c.N); c.N > 0 && math.IsInf(sum, 0) || math.IsNaN(sum) {
				return c, fmt.Errorf("a mean over %d scores isn't finite", c.N)
			}
		}
	}
	return c, nil
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
