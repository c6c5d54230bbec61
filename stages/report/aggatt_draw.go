package report

import (
	"image"
	"image/color"
	"strconv"

	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/picture"
)

// aggColours is the number of steps of the colour map, odd so that white is one of them.
const aggColours = 65

// An aggColumn is a column of tiles: its name, and what it shows of a row.
type aggColumn struct {
	name string
	draw func(p *aggPanel, a *aggregate)
}

// An aggPanel is where tiles are drawn.
type aggPanel struct {
	c    *chart.Canvas
	w, h int // of a tile
	x, y int // of the next one
}

// aggColumns returns the columns: the best example, the bins, the worst example.
func aggColumns(photos bool) []aggColumn {
	ends := func(name string, of func(a *aggregate) *example) []aggColumn {
		list := []aggColumn{{name + " map", func(p *aggPanel, a *aggregate) {
			e := of(a)
			p.tile(a, e.values, e.scale, strconv.FormatFloat(e.share, 'f', 3, 64)+" in the cell")
		}}}
		if photos {
			grid := aggColumn{name + " grid", func(p *aggPanel, a *aggregate) { p.photo(a, of(a).image) }}
			list = append([]aggColumn{grid}, list...)
		}
		return list
	}
	list := ends("best", func(a *aggregate) *example { return &a.best })
	for k, name := range binNames {
		list = append(list, aggColumn{name, func(p *aggPanel, a *aggregate) {
			p.tile(a, a.maps[k], a.scale, count(a.bins[k+1]-a.bins[k], "map"))
		}})
	}
	return append(list, ends("worst", func(a *aggregate) *example { return &a.worst })...)
}

// drawAggAtt draws a row of tiles for each aggregate: the best example, its bins, the worst example.
func drawAggAtt(rows []*aggregate) []byte {
	columns := aggColumns(rows[0].best.image != nil)
	p := aggPanel{w: leastSide, h: leastSide}
	if w, h := rows[0].width, rows[0].height; w > h {
		p.w = min(leastSide*w/h, 2*leastSide)
	} else {
		p.h = min(leastSide*h/w, 2*leastSide)
	}
	measure, labels := chart.NewCanvas(1, 1), 0
	for _, a := range rows {
		for _, id := range a.ids {
			for _, line := range measure.Wrap(chart.TextFont, id, labelWidth, labelLines) {
				labels = max(labels, measure.Width(chart.TextFont, line)+tileGap)
			}
		}
	}
	left, step := tileGap+labels, p.w+tileGap
	rowHeight := p.h + 2*lineHeight + rowGap
	top := tileGap + lineHeight + headPadding
	p.c = chart.NewCanvas(max(left+len(columns)*step, 2*leastWidth), top+len(rows)*rowHeight+keyHeight)
	for i, column := range columns {
		p.c.Text(left+i*step+p.w/2, top-headPadding, chart.TitleFont, chart.Ink, chart.Center, column.name)
	}
	for i, a := range rows {
		p.y = top + i*rowHeight
		down := p.y + 12
		for _, id := range a.ids {
			for _, line := range p.c.Wrap(chart.TextFont, id, labelWidth, labelLines) {
				p.c.Text(tileGap, down, chart.TextFont, chart.Ink, chart.Left, line)
				down += lineHeight + 2
			}
		}
		for k, column := range columns {
			p.x = left + k*step
			column.draw(&p, a)
		}
	}
	y := top + len(rows)*rowHeight + 4
	for i := range barWidth {
		p.c.Fill(image.Rect(left+i, y, left+i+1, y+barHeight), aggColour(i*aggColours/barWidth))
	}
	p.c.Outline(image.Rect(left, y, left+barWidth, y+barHeight), chart.Rule)
	p.c.Text(left+barWidth+8, y+9, chart.SmallFont, chart.Soft, chart.Left, "against and for the class, to "+
		"± the number: bins of a row share one, the best and the worst map have their own")
	return p.c.TrueColour()
}

// tile draws a map, with the end of its scale below it.
func (p *aggPanel) tile(a *aggregate, values []float64, scale float64, below string) {
	for i, v := range picture.ResizePlane(values, a.width, a.height, p.w, p.h, picture.Bilinear()) {
		level := (min(max(v/scale, -1), 1) + 1) / 2
		p.c.Image.SetRGBA(p.x+i%p.w, p.y+i/p.w, aggColour(stepOf(level, aggColours)))
	}
	p.frame(a)
	for i, text := range []string{below, "±" + short(scale)} {
		p.c.Text(p.x+p.w/2, p.y+p.h+lineHeight*(i+1), chart.SmallFont, chart.Soft, chart.Center, text)
	}
}

// photo draws a grid, whose payload was decoded before.
func (p *aggPanel) photo(a *aggregate, b []byte) {
	if m, err := photoOf(b); err == nil {
		if m, err = photoAt(m, p.w, p.h); err == nil {
			p.c.Photo(p.x, p.y, m)
		}
	}
	p.frame(a)
}

// aggColour returns the colour of a step.
func aggColour(k int) color.RGBA {
	return chart.RedWhiteGreen().At(2*float64(k)/(aggColours-1) - 1)
}

// frame outlines a tile, and in it the cells and the explained one.
func (p *aggPanel) frame(a *aggregate) {
	r := image.Rect(p.x, p.y, p.x+p.w, p.y+p.h)
	p.c.Outline(r, chart.Rule)
	a.outline.draw(p.c, r)
}
