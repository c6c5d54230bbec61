package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/interval"
)

// most is the number of lines that are told apart by their colours; of more, the best and the worst are, half
// of each.
const (
	most = 8
	half = 3
)

// drawCurves returns the figure of panels whose lines are the ids on an axis.
func drawCurves(p CurvesParams, panels [][]*plotLine, order stages.Order, line string,
	facets []string) chart.Figure {
	k := &chart.Curves{YLabel: p.Response, Columns: p.Columns, Low: math.Inf(1), High: math.Inf(-1)}
	k.Names = lineNames(panels, order, line)
	if len(k.Names) > most {
		k.Shown = extremes(panels, k.Names, line)
	}
	for _, panel := range panels {
		plot := chart.CurvePanel{Title: strings.Join(pick(panel[0].coord, facets), " · "),
			XLabel: share(panel[0].facts["order"]), Level: math.NaN()}
		first, lines := 0.0, 0.0
		for _, s := range panel {
			if len(s.items) == 0 {
				continue
			}
			drawn := chart.Line{Name: idOn(s.coord, line), X: s.shares, Y: s.mean}
			if p.Band != "none" {
				drawn.Low, drawn.High = s.low, s.high
			}
			for i, y := range s.mean {
				k.Low, k.High = min(k.Low, y), max(k.High, y)
				if p.Band != "none" && !math.IsNaN(s.low[i]) {
					k.Low, k.High = min(k.Low, s.low[i]), max(k.High, s.high[i])
				}
			}
			first, lines = first+s.mean[0], lines+1
			plot.Lines = append(plot.Lines, drawn)
		}
		if p.Reference == "start" && lines > 0 {
			plot.Level, k.Level = first/lines, p.Response+" at the start"
		}
		k.Panels = append(k.Panels, plot)
	}
	if k.Low > k.High {
		k.Low, k.High = 0, 1
	}
	if bounded(p.Response) {
		k.Low, k.High = max(k.Low, 0), min(k.High, 1)
	}
	k.Title = p.Title
	return k.Figure()
}

// lineNames returns the ids on the line axis, in the experiment's order.
func lineNames(panels [][]*plotLine, order stages.Order, line string) []string {
	var names []string
	for _, panel := range panels {
		for _, s := range panel {
			names = append(names, idOn(s.coord, line))
		}
	}
	slices.SortFunc(names, func(a, b string) int { return order.Compare(line, a, b) })
	return slices.Compact(names)
}

// extremes returns the best and the worst lines by the mean rank of their costs over the panels, best first.
func extremes(panels [][]*plotLine, names []string, line string) []string {
	rank, n := map[string]float64{}, map[string]float64{}
	for _, panel := range panels {
		for _, s := range panel {
			better := 0.0
			for _, o := range panel {
				if o.cost < s.cost {
					better++
				}
			}
			if !math.IsNaN(s.cost) {
				id := idOn(s.coord, line)
				rank[id], n[id] = rank[id]+better, n[id]+1
			}
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(id string) bool { return n[id] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank[a]/n[a], rank[b]/n[b]) })
	if len(names) > 2*half {
		names = append(names[:half:half], names[len(names)-half:]...)
	}
	return names
}

func bounded(response string) bool { return response == "probability" || response == "correct" }

// share labels the horizontal axis.
func share(order string) string {
	switch order {
	case "insertion":
		return "share of pixels inserted"
	case "deletion":
		return "share of pixels deleted"
	case "morf":
		return "share removed, most relevant first"
	case "lerf":
		return "share removed, least relevant first"
	}
	return "share of pixels"
}

// curvesCaption describes the figure, and by what lines are best and worst where not all have a colour.
func curvesCaption(p CurvesParams, panels [][]*plotLine, by string) string {
	least, most, skipped := math.MaxInt, 0, 0
	for _, panel := range panels {
		for _, s := range panel {
			least, most, skipped = min(least, len(s.items)), max(most, len(s.items)), skipped+s.skipped
		}
	}
	over := count(most, "image")
	if least != most {
		over = fmt.Sprintf("%d to %d images", least, most)
	}
	text := fmt.Sprintf("Mean %s over %s", p.Response, over)
	if p.Title != "" {
		text = p.Title + ": mean " + p.Response + " over " + over
	}
	switch p.Band {
	case "interval":
		text += "; bands: " + interval.Label
	case "paired":
		text += "; bands: " + interval.Label + ", without the differences between images that all lines share"
	}
	if p.Reference == "start" {
		text += "; the dashed line is the mean over the lines of the first point"
	}
	if by != "" {
		text += fmt.Sprintf("; colours for the best %d and the worst %d lines by %s", half, half, by)
	}
	if skipped > 0 {
		text += fmt.Sprintf("; %s not finite left out", count(skipped, "curve"))
	}
	return text + "."
}
