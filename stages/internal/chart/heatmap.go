package chart

import (
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A HeatMap is a table whose cells have colours and numbers.
type HeatMap struct {
	Title         string
	Rows, Columns []string
	Values        [][]float64 // by row and column, NaN where undefined
	Missing       [][]bool    // by row and column: cells that aren't drawn; nil for none
	Breaks        []bool      // by row: it stands apart from the one above; nil for none
	Digits        int         // decimals of the numbers

	// Bands are ascending limits: cells between the same limits have the same colour. Without, colours are
	// those of Sequential from the smallest value to the largest, or of Diverging around 0 if one is
	// negative. BandNames is what bands are called, the lowest first, or nil.
	Bands     []float64
	BandNames []string
}

// Figure draws the heat map. Undefined cells are white, with a dash; the key explains the bands.
func (m *HeatMap) Figure() Figure {
	p := newPlot("")
	number := words(labelSize)
	number.XAlign = text.XCenter
	cell := vg.Length(34)
	for _, row := range m.Values {
		for _, v := range row {
			cell = max(cell, width(number, m.number(v))+10)
		}
	}
	longest := vg.Length(0)
	for _, c := range m.Columns {
		longest = max(longest, width(number, c)+8)
	}
	if longest < 72 { // short names lie
		cell = max(cell, longest)
	}
	name(p, &p.X, m.Columns, cell)
	name(p, &p.Y, m.Rows, 0)
	p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}} // the first row on top
	p.X.Color, p.Y.Color = nil, nil
	p.X.Width, p.Y.Width = 0, 0
	p.Add(heatCells{m, number})
	const height = 20
	l := layout{title: m.Title, plots: []*plot.Plot{p}, w: vg.Length(len(m.Columns)) * cell,
		h: vg.Length(len(m.Rows)) * height}
	if m.Bands != nil {
		l.legend = newLegend()
		for k := len(m.Bands); k >= 0; k-- {
			col := Blues(float64(k) / float64(len(m.Bands)))
			l.legend.Add(oneLine(m.bandName(k)), swatch{col, col})
		}
	}
	return l.figure()
}

// bandName names band k by its limits, after its name if it has one.
func (m *HeatMap) bandName(k int) string {
	limit := func(x float64) string {
		return strings.Replace(strconv.FormatFloat(x, 'g', -1, 64), "-", "−", 1)
	}
	name := ""
	switch last := len(m.Bands); k {
	case 0:
		name = "up to " + limit(m.Bands[0])
	case last:
		name = "above " + limit(m.Bands[last-1])
	default:
		name = limit(m.Bands[k-1]) + " to " + limit(m.Bands[k])
	}
	if m.BandNames != nil {
		return m.BandNames[k] + ": " + name
	}
	return name
}

func (m *HeatMap) number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return strings.Replace(strconv.FormatFloat(v, 'f', m.Digits, 64), "-", "−", 1)
}

// Band returns the number of the band of a value, from 0 below the first limit. A value at a limit belongs
// below.
func Band(bands []float64, v float64) int {
	n := 0
	for n < len(bands) && v > bands[n] {
		n++
	}
	return n
}

// colour maps the values of a heat map.
func (m *HeatMap) colour() func(float64) color.RGBA {
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range m.Values {
		for _, v := range row {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return func(v float64) color.RGBA {
		switch {
		case math.IsNaN(v):
			return White
		case m.Bands != nil:
			return Blues(float64(Band(m.Bands, v)) / float64(len(m.Bands)))
		case low < 0:
			return Diverging().At(0.8 * v / max(-low, high))
		case high > low:
			return Blues((v - low) / (high - low))
		}
		return Blues(0)
	}
}

type heatCells struct {
	m      *HeatMap
	number text.Style
}

func (h heatCells) Plot(c draw.Canvas, p *plot.Plot) {
	const (
		seam  = 0.5 // white around a cell
		apart = 2   // more of it between rows that stand apart
	)
	x, y := p.Transforms(&c)
	colour := h.m.colour()
	for i, row := range h.m.Values {
		for j, v := range row {
			if h.m.Missing != nil && h.m.Missing[i][j] {
				continue
			}
			x0, x1 := x(float64(j)-0.5)+seam, x(float64(j)+0.5)-seam
			y0, y1 := y(float64(i)-0.5)-seam, y(float64(i)+0.5)+seam
			if h.m.Breaks != nil && h.m.Breaks[i] {
				y0 -= apart
			}
			if h.m.Breaks != nil && i+1 < len(h.m.Breaks) && h.m.Breaks[i+1] {
				y1 += apart
			}
			col := colour(v)
			c.FillPolygon(col, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
			h.number.Color = On(col)
			c.FillText(h.number, vg.Point{X: (x0 + x1) / 2, Y: (y0 + y1) / 2}, h.m.number(v))
		}
	}
}

// On returns the colour of text that is readable on col.
func On(col color.RGBA) color.RGBA {
	if 0.299*float64(col.R)+0.587*float64(col.G)+0.114*float64(col.B) < 130 {
		return White
	}
	return Ink
}
