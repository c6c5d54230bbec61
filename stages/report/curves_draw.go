package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/english"
	"github.com/runexp/runexp/stages/interval"
)

// most is the number of lines with distinct colours; if there are more, the best and the worst have
// colours, half of each.
const (
	most = 8
	half = 3
)

// fewLines is the largest number of lines with distinct bands.
const fewLines = 4

// drawCurves returns the figure of panels whose lines are the ids on an axis.
func drawCurves(e *stages.Env, p CurvesParams, panels [][]*plotLine, line string, f facets) *chart.Curves {
	k := &chart.Curves{Title: p.Title, YLabel: cmp.Or(p.Y, responseLabel(p.Response)), Grid: f.grid,
		Within: [2]float64{math.Inf(-1), math.Inf(1)}, W: size(p.Width, 220), H: size(p.Height, 170),
		Chance: p.Chance}
	if bounded(p.Response) {
		k.Within = [2]float64{0, 1}
	}
	names := lineNames(panels, e.Order, line)
	label := func(id string) string { return e.Label(line, id) }
	k.Names = mapped(names, label)
	if len(k.Names) > most {
		k.Shown = mapped(extremes(panels, names, line), label)
	}
	switch len(p.Area) {
	case 2:
		k.Area = "between " + label(p.Area[0]) + " and " + label(p.Area[1])
	case 3:
		k.Area, k.Hidden = label(p.Area[2]), []string{label(p.Area[2])}
	}
	for n, panel := range panels {
		plot := chart.CurvePanel{Title: f.titles[n], Level: math.NaN(),
			XLabel: cmp.Or(p.X, share(panel[0].facts))}
		first, lines := 0.0, 0.0
		area := make([][]float64, 2)
		for _, s := range panel {
			if len(s.items) == 0 {
				continue
			}
			id := idOn(s.coord, line)
			drawn := chart.Line{Name: label(id), X: s.shares, Y: s.mean}
			if p.Band != "none" {
				drawn.Low, drawn.High = s.low, s.high
			}
			first, lines = first+s.mean[0], lines+1
			plot.Lines = append(plot.Lines, drawn)
			if i := slices.Index(p.Area, id); i == 0 || i == 1 {
				area[i], plot.AreaX = s.mean, s.shares
			}
		}
		if len(area[0]) > 0 && len(area[0]) == len(area[1]) {
			plot.Area = area
		}
		if p.Reference == "start" && lines > 0 {
			plot.Level, k.Level = first/lines, responseLabel(p.Response)+" at the start"
		}
		k.Panels = append(k.Panels, plot)
	}
	return k
}

// hidden describes which lines are hidden by others along their whole length.
func hidden(k *chart.Curves) (notes []string) {
	on := map[[2]string]int{}
	for _, panel := range k.Panels {
		for i, line := range panel.Lines {
			for _, other := range panel.Lines[:i] {
				scale := slices.Max(other.Y) - slices.Min(other.Y)
				if slices.Min(chart.Below([]chart.Line{other, line}, scale)[1]) > 0 &&
					!slices.Contains(k.Hidden, line.Name) && !slices.Contains(k.Hidden, other.Name) {
					on[[2]string{other.Name, line.Name}]++
				}
			}
		}
	}
	for _, pair := range slices.SortedFunc(maps.Keys(on), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(slices.Index(k.Names, a[1]), slices.Index(k.Names, b[1])),
			cmp.Compare(slices.Index(k.Names, a[0]), slices.Index(k.Names, b[0])))
	}) {
		note := pair[1] + " lies on " + pair[0]
		if n := on[pair]; len(k.Panels) > 1 && n < len(k.Panels) {
			note += fmt.Sprintf(" in %s of %d", english.Count(n, "panel"), len(k.Panels))
		}
		notes = append(notes, note)
	}
	return notes
}

// responseLabel names a response for people.
func responseLabel(response string) string {
	switch response {
	case "correct", "top-1":
		return "accuracy"
	case "share":
		return "response"
	}
	return response
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

// extremes returns the best and the worst lines by the mean rank of their costs over the panels, best
// first.
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
func share(of stages.Facts) string {
	parts := "pixels"
	if of[stages.ItemsFact] == stages.TextItems {
		parts = "tokens"
	}
	switch of["order"] {
	case "insertion":
		return "share of " + parts + " inserted"
	case "deletion":
		return "share of " + parts + " deleted"
	case "morf":
		return "share removed, most relevant first"
	case "lerf":
		return "share removed, least relevant first"
	case "information":
		return "share of the information"
	}
	return "share of " + parts
}

// curvesCaption describes the figure, and the criterion for the best and worst lines if not all have a
// colour.
func curvesCaption(p CurvesParams, items string, panels [][]*plotLine, by string, hidden []string) string {
	least, most, skipped, seeds := math.MaxInt, 0, 0, 0
	for _, panel := range panels {
		for _, s := range panel {
			seeds = max(seeds, s.seeds)
			least, most, skipped = min(least, len(s.items)), max(most, len(s.items)), skipped+s.skipped
		}
	}
	over := english.CountOf(most, items)
	if least != most {
		over = fmt.Sprintf("%d to %d %s", least, most, items)
	}
	y := cmp.Or(p.Y, responseLabel(p.Response))
	text := "ean " + y + " over " + over
	if p.Title != "" {
		text = p.Title + ": m" + text
	} else {
		text = "M" + text
	}
	if seeds > 0 {
		text += fmt.Sprintf(", each with the mean of its curves over %d seeds where they depend on one",
			seeds)
	}
	switch p.Band {
	case "interval":
		text += "; bands: " + interval.Label(items)
	case "paired":
		text += "; bands: " + interval.Label(items) + ", without the differences between " + items +
			" that all lines share"
	}
	if p.Reference == "start" {
		text += "; the dashed line is the mean over the lines of the first point"
	}
	if by != "" {
		text += fmt.Sprintf("; colours for the best %d and the worst %d lines by %s", half, half, by)
	}
	if hidden != nil {
		text += "; " + strings.Join(hidden, ", ")
	}
	if skipped > 0 {
		text += fmt.Sprintf("; %s not finite left out", english.Count(skipped, "curve"))
	}
	return text + "."
}
