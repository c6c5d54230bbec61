package report

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// averagedLines joins the lines that differ in their seeds alone to one, in which every item has the mean of
// its curves: an item that lacks a finite curve of some seed is left out. So seeds lie inside items, as those
// of scores do. Lines that are the same for all seeds don't depend on them, and stay.
func averagedLines(lines []*plotLine, data []stages.Data) (out []*plotLine, err error) {
	var groups [][]*plotLine
	for i, s := range lines {
		at := -1
		if len(data[i].Replicate) > 0 {
			at = slices.IndexFunc(out, func(o *plotLine) bool { return slices.Equal(o.coord, s.coord) })
		}
		if at < 0 {
			at = len(out)
			out, groups = append(out, s), append(groups, nil)
		}
		groups[at] = append(groups[at], s)
	}
	for i, group := range groups {
		if slices.ContainsFunc(group, func(s *plotLine) bool { return !s.equal(group[0]) }) {
			if out[i], err = averageLine(group, stages.ItemsOf(data)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// equal reports whether two lines have the same curves.
func (s *plotLine) equal(o *plotLine) bool {
	return slices.Equal(s.items, o.items) && !slices.ContainsFunc(s.items, func(id string) bool {
		return !slices.Equal(s.curves[id], o.curves[id])
	})
}

// averageLine returns the line of the mean curves of the seeds of a line.
func averageLine(seeds []*plotLine, items string) (*plotLine, error) {
	first := seeds[0]
	mean := &plotLine{coord: first.coord, facts: first.facts, shares: first.shares, seeds: len(seeds),
		curves: map[string][]float64{}}
	left := map[string]bool{}
	for _, s := range seeds {
		if !slices.Equal(s.shares, first.shares) {
			return nil, fmt.Errorf("curves of seeds have their points at other shares: a mean needs the same")
		}
		mean.skipped = max(mean.skipped, s.skipped)
		for _, id := range s.items {
			left[id] = true
		}
	}
	for _, id := range first.items {
		sum := make([]float64, len(first.shares))
		common := true
		for _, s := range seeds {
			y, ok := s.curves[id]
			common = common && ok
			for k, x := range y {
				sum[k] += x / float64(len(seeds))
			}
		}
		if common {
			mean.curves[id], mean.items = sum, append(mean.items, id)
			delete(left, id)
		}
	}
	if len(mean.items) == 0 {
		return nil, fmt.Errorf("the seeds have no %s in common, of which curves are averaged: name the "+
			"axis of the seeds in a parameter, or leave it out of over", items)
	}
	mean.skipped = max(mean.skipped, len(left))
	return mean, nil
}
