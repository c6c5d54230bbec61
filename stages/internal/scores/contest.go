package scores

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/stat"
	"github.com/runexp/runexp/stages/interval"
)

// A Contest compares the ids of one axis in every case, a combination of the other collapsed axes.
type Contest struct {
	Axis        string
	Items       string   // what has scores, in the plural: "images"
	Others      []string // axes of the cases, sorted
	Competitors []string // ids on Axis
	Names       []string // their labels
	Cases       []Case
	Loaded      int // number of cells, of which those that differ in their seeds alone are one
}

// A Case holds the cells of all competitors.
type Case struct {
	IDs     []string // on the contest's other axes
	Name    string   // labels of the ids, joined; "" if only the competitors' axis is collapsed
	Cells   []*Cell  // by competitor; nil if missing
	Measure stages.Measure
	// Comparable is whether every competitor has a cell, and all have one direction other than none.
	Comparable bool
}

// NewContest reads the cells of a port and groups them. Competitors and cases are in the experiment's
// order, or with a nil order sorted; label says what an id is called, and param is the parameter that names
// the axis.
func NewContest(ctx context.Context, order stages.Order, label func(axis, id string) string,
	data []stages.Data, param, axis string) (*Contest, error) {
	axes := Axes(data)
	axis, err := OneAxis(param, axis, axes)
	if err != nil {
		return nil, err
	}
	cells, err := Load(ctx, data)
	if err != nil {
		return nil, err
	}
	c := &Contest{Axis: axis, Items: stages.ItemsOf(data), Others: Without(axes, axis),
		Loaded: len(cells)}
	for _, ids := range Places(order, data, []string{axis}) {
		c.Competitors, c.Names = append(c.Competitors, ids[0]), append(c.Names, label(axis, ids[0]))
	}
	for _, ids := range Places(order, data, c.Others) {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = label(c.Others[i], id)
		}
		m := Case{IDs: ids, Name: strings.Join(names, " "), Cells: make([]*Cell, len(c.Competitors))}
		for i := range cells {
			if slices.Equal(Pick(cells[i].Coord, c.Others), ids) {
				m.Cells[slices.Index(c.Competitors, IDOn(cells[i].Coord, axis))] = &cells[i]
			}
		}
		m.measure()
		c.Cases = append(c.Cases, m)
	}
	return c, nil
}

// Shared returns, by competitor, the scores of the images that have a defined score of every competitor, in
// the order of the items. A missing cell leaves none.
func (m *Case) Shared() [][]float64 {
	lists := make([]*List, len(m.Cells))
	for i, c := range m.Cells {
		if c == nil {
			return make([][]float64, len(m.Cells))
		}
		lists[i] = c.Scores
	}
	return Shared(lists)
}

// Both returns the scores of a and b for the images that have a defined score of both, in the order of the
// items. A missing cell leaves none.
func (m *Case) Both(a, b int) (x, y []float64) {
	if m.Cells[a] == nil || m.Cells[b] == nil {
		return nil, nil
	}
	pair := Shared([]*List{m.Cells[a].Scores, m.Cells[b].Scores})
	return pair[0], pair[1]
}

// Best returns the competitor with the best mean of shared scores, or estimate of it, the first one on ties,
// or −1 if the case isn't comparable or no image is shared.
func (m *Case) Best() int { return m.best(m.Samples()) }

// BestCheap is Best by the scores of all images alone.
func (m *Case) BestCheap() int {
	samples := m.Samples()
	for k, v := range m.Shared() {
		samples[k] = interval.Sample{Exact: v}
	}
	return m.best(samples)
}

func (m *Case) best(shared []interval.Sample) int {
	if !m.Comparable {
		return -1
	}
	quality := m.QualitiesOf(shared)
	if slices.ContainsFunc(quality, math.IsNaN) {
		return -1
	}
	best := 0
	for p, x := range quality {
		if x > quality[best] {
			best = p
		}
	}
	return best
}

// QualitiesOf returns how good the means of samples of the case's scores are, or estimates of them, larger is
// better: equal ones are tied at the resolution of the scores. The mean of no scores is NaN.
func (m *Case) QualitiesOf(lists []interval.Sample) []float64 {
	means := make([]float64, len(lists))
	for p, v := range lists {
		means[p] = v.Estimate()
	}
	return m.qualities(means, resolution(lists))
}

// resolution is that of the scores of samples.
func resolution(lists []interval.Sample) float64 {
	var values [][]float64
	for _, v := range lists {
		values = append(values, v.Cheap, v.Exact)
	}
	return stat.Resolution(values...)
}

// qualities returns how good means are, equal ones tied.
func (m *Case) qualities(means []float64, resolution float64) []float64 {
	out := stat.Tied(means, resolution)
	if m.Measure.Direction == stages.Lower {
		for p := range out {
			out[p] = -out[p]
		}
	}
	return out
}

// Cells returns the cells of all cases.
func (c *Contest) Cells() (all []*Cell) {
	for _, m := range c.Cases {
		for _, cell := range m.Cells {
			if cell != nil {
				all = append(all, cell)
			}
		}
	}
	return all
}

// Axes returns the axes of the cells, sorted.
func (c *Contest) Axes() []string {
	axes := append([]string{c.Axis}, c.Others...)
	slices.Sort(axes)
	return axes
}

// DropUnscored removes the competitors without a defined score in any case, which would leave no image that
// all share, and returns their labels.
func (c *Contest) DropUnscored() (unscored []string) {
	for p := len(c.Competitors) - 1; p >= 0; p-- {
		scored := slices.ContainsFunc(c.Cases, func(m Case) bool {
			return m.Cells[p] != nil && slices.ContainsFunc(m.Cells[p].Scores.Values,
				func(x float64) bool { return !math.IsNaN(x) })
		})
		if scored {
			continue
		}
		unscored = append(unscored, c.Names[p])
		c.Competitors, c.Names = slices.Delete(c.Competitors, p, p+1), slices.Delete(c.Names, p, p+1)
		for i := range c.Cases {
			c.Cases[i].Cells = slices.Delete(c.Cases[i].Cells, p, p+1)
		}
	}
	slices.Reverse(unscored)
	for i := range c.Cases {
		c.Cases[i].measure()
	}
	return unscored
}

// measure sets Measure and Comparable.
func (m *Case) measure() {
	m.Measure, m.Comparable = stages.Measure{Direction: stages.None}, len(m.Cells) > 0
	for _, c := range m.Cells {
		switch {
		case c == nil:
			m.Comparable = false
			continue
		case m.Measure.Direction == stages.None:
			m.Measure = c.Measure
		}
		if c.Measure.Direction == stages.None || c.Measure.Direction != m.Measure.Direction {
			m.Comparable = false
		}
	}
}
