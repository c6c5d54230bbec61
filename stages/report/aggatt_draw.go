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

// drawAggAtt draws a row of tiles for each aggregate: its bins, and the examples with their images.
func drawAggAtt(rows []*aggregate, p AggAttParams) []byte {
	heads := binNames[:]
	photos := rows[0].best.image != nil
	for _, name := range []string{"best", "worst"} {
		if photos {
			heads = append(heads[:len(heads):len(heads)], name+" grid")
		}
		heads = append(heads[:len(heads):len(heads)], name)
	}
	s := sheet{side: sideFor(len(rows) * len(heads))}
	step, rowHeight := s.side+tileGap, s.side+scaleHeight+8
	top, left := headHeight, tileGap+labelWidth
	c := chart.NewCanvas(max(left+len(heads)*step+tileGap, minWidth), top+len(rows)*rowHeight+34)
	var grids []*picture.RGB
	for _, a := range rows {
		for _, x := range []*example{&a.best, &a.worst} {
			if x.image == nil {
				continue
			}
			if photo, err := s.photo(x.image); err == nil {
				grids = append(grids, photo)
			}
		}
	}
	var keep []color.RGBA
	for k := range aggColours {
		keep = append(keep, aggColour(k))
	}
	palette := chart.Palette(grids, min(photoColours, 256-textColours-len(keep)))
	keep = append(keep, palette...)
	for i, name := range heads {
		c.Text(left+i*step+s.side/2, top-8, chart.TitleFont, chart.Ink, chart.Center,
			c.Fit(chart.TitleFont, name, s.side+tileGap-2))
	}
	for i, a := range rows {
		x, y := left, top+i*rowHeight
		for k, id := range a.ids {
			c.Text(tileGap, y+14+16*k, chart.TextFont, chart.Ink, chart.Left,
				c.Fit(chart.TextFont, id, labelWidth-8))
		}
		tile := func(v []float64, scale float64, below string) {
			for i, v := range picture.ResizePlane(v, a.width, a.height, s.side, s.side, picture.Bilinear()) {
				level := (min(max(v/scale, -1), 1) + 1) / 2
				c.Image.SetRGBA(x+i%s.side, y+i/s.side, aggColour(stepOf(level, aggColours)))
			}
			a.frame(c, s.side, x, y)
			c.Text(x+s.side/2, y+s.side+12, chart.SmallFont, chart.Soft, chart.Center, below)
			x += step
		}
		for k, v := range a.maps {
			tile(v, a.scale, strconv.Itoa(a.bins[k+1]-a.bins[k]))
		}
		for _, e := range []*example{&a.best, &a.worst} {
			if photos {
				if photo, err := s.photo(e.image); err == nil {
					c.Photo(x, y, chart.Dither(photo, palette))
				}
				a.frame(c, s.side, x, y)
				x += step
			}
			tile(e.values, e.scale, strconv.FormatFloat(e.share, 'f', 3, 64))
		}
	}
	y := top + len(rows)*rowHeight + 4
	for i := range barWidth {
		c.Fill(image.Rect(left+i, y+8, left+i+1, y+8+barHeight), aggColour(i*aggColours/barWidth))
	}
	c.Outline(image.Rect(left, y+8, left+barWidth, y+8+barHeight), chart.Rule)
	c.Text(left+barWidth+8, y+17, chart.SmallFont, chart.Soft, chart.Left,
		"against to for the class; below, the number of maps, or the share in the cell")
	return c.PNG(keep)
}

// aggColour returns the colour of a step.
func aggColour(k int) color.RGBA {
	return chart.RedWhiteGreen().At(2*float64(k)/(aggColours-1) - 1)
}

// frame outlines a tile, and in it the explained cell.
func (a *aggregate) frame(c *chart.Canvas, side, x, y int) {
	c.Outline(image.Rect(x, y, x+side, y+side), chart.Rule)
	box := image.Rectangle{}
	for i, m := range a.mask {
		if m != 0 {
			px, py := i%a.width, i/a.width
			box = box.Union(image.Rect(px, py, px+1, py+1))
		}
	}
	c.Outline(image.Rect(x+box.Min.X*side/a.width, y+box.Min.Y*side/a.height, x+box.Max.X*side/a.width,
		y+box.Max.Y*side/a.height), chart.Ink)
}
