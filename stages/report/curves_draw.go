package report

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/interval"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// Sizes of the figure in pixels.
const (
	panelWidth  = 340
	panelHeight = 270
	margin      = 14
	captionGap  = 10
)

func drawCurves(p CurvesParams, panels [][]*plotLine, order stages.Order, line string,
	facets []string) []byte {
	keys := legend(panels, order, line)
	low, high := math.Inf(1), math.Inf(-1)
	for _, panel := range panels {
		for _, s := range panel {
			for k, y := range s.mean {
				if !math.IsNaN(y) {
					low, high = min(low, y), max(high, y)
					if p.Band != "none" && !math.IsNaN(s.low[k]) {
						low, high = min(low, s.low[k]), max(high, s.high[k])
					}
				}
			}
		}
	}
	if math.IsInf(low, 0) {
		low, high = 0, 1
	}
	if bounded(p.Response) {
		low, high = max(low, 0), min(high, 1)
	}
	ticks := chart.Ticks(low, high, 5)
	columns := min(p.Columns, len(panels))
	rows := (len(panels) + columns - 1) / columns
	width := 2*margin + columns*panelWidth
	measure := chart.NewCanvas(1, 1)
	legendHeight := 0
	if line != "" {
		legendHeight = captionGap + chart.Legend(measure, nil, 0, 0, width-4*margin, keys)
	}
	c := chart.NewCanvas(width, 2*margin+rows*panelHeight+legendHeight)
	for i, panel := range panels {
		x, y := margin+i%columns*panelWidth, margin+i/columns*panelHeight
		plot := chart.Panel{Low: ticks[0], High: ticks[len(ticks)-1], Ticks: ticks,
			XLabel: share(panel[0].facts["order"])}
		plot.Title = strings.Join(pick(panel[0].coord, facets), " · ")
		if plot.Title == "" {
			plot.Title = p.Title
		}
		if i%columns == 0 {
			plot.YLabel = p.Response
		}
		for _, s := range panel {
			k := keys[slices.IndexFunc(keys, func(k chart.Key) bool { return k.Name == idOn(s.coord, line) })]
			curve := chart.Curve{Y: s.mean, Colour: k.Colour, Dash: k.Dash}
			if len(s.items) > 0 {
				curve.X = s.shares
			}
			if p.Band != "none" && len(s.items) > 1 {
				curve.Low, curve.High = s.low, s.high
			}
			plot.Curves = append(plot.Curves, curve)
		}
		plot.Draw(c, image.Rect(x, y, x+panelWidth, y+panelHeight))
	}
	if line != "" {
		chart.Legend(measure, c, 2*margin, margin+rows*panelHeight+captionGap, width-4*margin, keys)
	}
	var keep []color.RGBA
	for _, k := range keys {
		keep = append(keep, k.Colour)
	}
	return c.PNG(keep)
}

// legend assigns a colour to every id of the line axis, and dashes when colours are used up.
func legend(panels [][]*plotLine, order stages.Order, line string) []chart.Key {
	var names []string
	for _, panel := range panels {
		for _, s := range panel {
			names = append(names, idOn(s.coord, line))
		}
	}
	slices.SortFunc(names, func(a, b string) int { return order.Compare(line, a, b) })
	names = slices.Compact(names)
	colours := chart.Lines()
	dashes := [][]float64{nil, {7, 3}, {2, 3}, {9, 3, 2, 3}}
	keys := make([]chart.Key, len(names))
	for i, n := range names {
		keys[i] = chart.Key{Name: n, Colour: colours[i%len(colours)],
			Dash: dashes[i/len(colours)%len(dashes)]}
	}
	return keys
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

func curvesCaption(p CurvesParams, panels [][]*plotLine) string {
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
	if skipped > 0 {
		text += fmt.Sprintf("; %s not finite left out", count(skipped, "curve"))
	}
	return text + "."
}
