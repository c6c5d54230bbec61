package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Intervals is a forest plot: a row per estimate with its interval.
type Intervals struct {
	Title, XLabel    string
	Names            []string
	Value, Low, High []float64 // NaN where undefined
}

// Figure draws the intervals, the first on top, with a line at 0 if that is inside the scale.
func (v *Intervals) Figure() Figure {
	low, high := math.Inf(1), math.Inf(-1)
	for _, xs := range [][]float64{v.Value, v.Low, v.High} {
		for _, x := range xs {
			if finite(Point{X: x}) {
				low, high = min(low, x), max(high, x)
			}
		}
	}
	if low > high {
		low, high = 0, 1
	}
	p := newPlot("")
	scale := Ticks(low, high, 6)
	p.X.Min, p.X.Max, p.X.Tick.Marker = scale[0], scale[len(scale)-1], ticks(scale)
	p.X.Label.Text = oneLine(v.XLabel)
	name(p, &p.Y, v.Names, 0)
	p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
	p.Add(gridLines(true))
	if p.X.Min < 0 && p.X.Max > 0 {
		p.Add(level{0, draw.LineStyle{Color: Soft, Width: 1}, true})
	}
	points := errorBars{}
	for i, x := range v.Value {
		if !finite(Point{X: x}) {
			continue
		}
		points.XYs = append(points.XYs, plotter.XY{X: x, Y: float64(i)})
		points.XErrors = append(points.XErrors,
			struct{ Low, High float64 }{reach(x, v.Low[i]), reach(x, v.High[i])})
	}
	if len(points.XYs) > 0 {
		bars, err := plotter.NewXErrorBars(points)
		if err != nil {
			panic(err) // its only errors are of empty or infinite values
		}
		bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: Lines()[0], Width: lineWidth}, 6
		dots, err := plotter.NewScatter(points.XYs)
		if err != nil {
			panic(err)
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: Lines()[0], Radius: 3, Shape: draw.CircleGlyph{}}
		p.Add(bars, dots)
	}
	return layout{title: v.Title, plots: []*plot.Plot{p}, w: 300,
		h: vg.Length(len(v.Names)) * 18}.figure()
}

type errorBars struct {
	plotter.XYs
	plotter.XErrors
}

// reach returns an end of an interval relative to x, 0 without an end.
func reach(x, end float64) float64 {
	if !finite(Point{X: end}) {
		return 0
	}
	return end - x
}
