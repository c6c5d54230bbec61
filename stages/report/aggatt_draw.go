package report

import (
	"image/color"
	"strconv"

	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/english"
)

// aggColours is the number of steps of the colour map, odd so that white is one of them.
const aggColours = 33

// An aggColumn is a column of tiles: its name, and the part of a row that it shows.
type aggColumn struct {
	name string
	draw func(p *aggPanel, a *aggregate)
}

// An aggPanel is the place where a tile is drawn.
type aggPanel struct {
	page *chart.Page
	at   chart.Rect
}

// aggColumns returns the columns: the best example, the bins, the worst example.
func aggColumns(photos bool) []aggColumn {
	ends := func(name string, of func(a *aggregate) *example) []aggColumn {
		list := []aggColumn{{name + " map", func(p *aggPanel, a *aggregate) {
			e := of(a)
			p.tile(a, e.values, e.scale, strconv.FormatFloat(e.share, 'f', 3, 64)+" in cell")
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
			p.tile(a, a.maps[k], a.scale, english.Count(a.bins[k+1]-a.bins[k], "map"))
		}})
	}
	return append(list, ends("worst", func(a *aggregate) *example { return &a.worst })...)
}

// draw draws a row of tiles for each aggregate: the best example, its bins, the worst example. whole is the
// dots per inch at which a pixel of a map is one dot.
func (p AggAttParams) draw(rows []*aggregate) (page *chart.Page, whole float64) {
	columns := aggColumns(rows[0].best.image != nil)
	ratio := float64(rows[0].width) / float64(rows[0].height)
	w, h := float64(p.Tile)*min(max(ratio, 1), 2), float64(p.Tile)*min(max(1/ratio, 1), 2)
	labels := 0.0
	for _, a := range rows {
		labels = max(labels, idsWidth(a.labels))
	}
	left, step := border+labels, w+tileGap
	rowHeight := h + 2*lineHeight + rowGap
	top := float64(border + lineHeight + headPadding)
	page = &chart.Page{Width: max(left+float64(len(columns))*step-tileGap+border, 2*leastWidth),
		Height: top + float64(len(rows))*rowHeight + keyHeight + border}
	for i, column := range columns {
		page.Text(left+float64(i)*step+w/2, top-headPadding, chart.TitleFont, chart.Ink, chart.Center,
			column.name)
	}
	y := top
	for _, a := range rows {
		writeIDs(page, border, y, a.labels)
		for k, column := range columns {
			column.draw(&aggPanel{page, chart.Rect{X: left + float64(k)*step, Y: y, W: w, H: h}}, a)
		}
		y += rowHeight
	}
	drawKey(page, left, y, aggPalette(), "against and for the class, to ± the number: bins of a row share "+
		"one, the best and the worst map have their own")
	return page, 72 * float64(rows[0].width) / w
}

// tile draws a map, with the end of its scale below it.
func (p *aggPanel) tile(a *aggregate, values []float64, scale float64, below string) {
	steps := make([]uint8, len(values))
	for i, v := range values {
		steps[i] = uint8(stepOf((min(max(v/scale, -1), 1)+1)/2, aggColours))
	}
	p.page.Image(p.at, chart.Indexed(a.width, a.height, steps, aggPalette()))
	p.frame(a)
	for i, text := range []string{below, "±" + short(scale)} {
		p.page.Text(p.at.X+p.at.W/2, p.at.Y+p.at.H+lineHeight*float64(i+1)-1, chart.SmallFont, chart.Soft,
			chart.Center, text)
	}
}

// photo draws a grid, whose payload was decoded before.
func (p *aggPanel) photo(a *aggregate, b []byte) {
	if m, err := photoOf(b); err == nil {
		p.page.Image(p.at, chart.Photo(m))
	}
	p.frame(a)
}

// aggPalette returns the colours of steps.
func aggPalette() (list []color.NRGBA) {
	for k := range aggColours {
		list = append(list, color.NRGBA(chart.RedWhiteGreen().At(2*float64(k)/(aggColours-1)-1)))
	}
	return list
}

// frame outlines a tile, and in it the cells and the explained one.
func (p *aggPanel) frame(a *aggregate) {
	p.page.Outline(p.at, hairline, chart.Rule)
	a.outline.draw(p.page, p.at)
}

// shown lists the contents of the figure; its items are the examples'.
func (p AggAttParams) shown(rows []*aggregate) shown {
	var out shown
	for _, c := range aggColumns(rows[0].best.image != nil) {
		out.Columns = append(out.Columns, c.name)
	}
	for _, a := range rows {
		for _, x := range []example{a.best, a.worst} {
			out.add(x.item, a.ids)
		}
	}
	return out
}
