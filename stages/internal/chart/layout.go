package chart

import (
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Grid says where the panels of a figure stand. Without names of rows and columns they stand one after
// another, PerRow in a row.
type Grid struct {
	PerRow        int
	Rows, Columns []string // names of the rows, at their left, and of the columns, above them
	At            [][2]int // row and column of every panel
	Gap           string   // text in place of a missing panel
}

// named reports whether rows and columns have names.
func (g Grid) named() bool { return g.At != nil }

// place returns the row and the column of panel i.
func (g Grid) place(i int) (row, column int) {
	if g.named() {
		return g.At[i][0], g.At[i][1]
	}
	return i / max(g.PerRow, 1), i % max(g.PerRow, 1)
}

// size returns the number of rows and columns of n panels.
func (g Grid) size(n int) (rows, columns int) {
	for i := range n {
		row, column := g.place(i)
		rows, columns = max(rows, row+1), max(columns, column+1)
	}
	return max(rows, len(g.Rows)), max(columns, len(g.Columns))
}

// first reports whether panel i is the first in its row, of n.
func (g Grid) first(i, n int) bool {
	row, column := g.place(i)
	for k := range n {
		if r, c := g.place(k); r == row && c < column {
			return false
		}
	}
	return true
}

// beyond reports whether, in a grid with names, the next panel below panel i in its column is alike, or above
// it where side is -1. There are n.
func (g Grid) beyond(i, n, side int, alike func(i int) bool) bool {
	row, column := g.place(i)
	next, nearest := -1, 0
	for k := range n {
		if r, c := g.place(k); c == column && (r-row)*side > 0 && (next < 0 || (nearest-r)*side > 0) {
			next, nearest = k, r
		}
	}
	return g.named() && next >= 0 && alike(next)
}

// scales returns the ticks of every panel, whose values span the given ranges, by what makes round numbers of
// a range: the same for all, or with byRow for those of a row.
func (g Grid) scales(ranges [][2]float64, byRow bool,
	round func(low, high float64, n int) []float64) [][]float64 {
	key := func(i int) int {
		if row, _ := g.place(i); byRow {
			return row
		}
		return 0
	}
	spans := map[int][2]float64{}
	for i, r := range ranges {
		if !(r[0] <= r[1]) {
			continue
		}
		if s, ok := spans[key(i)]; ok {
			r = [2]float64{min(r[0], s[0]), max(r[1], s[1])}
		}
		spans[key(i)] = r
	}
	out := make([][]float64, len(ranges))
	for i := range ranges {
		s, ok := spans[key(i)]
		if !ok {
			s = [2]float64{0, 1}
		}
		out[i] = round(s[0], s[1], 5)
	}
	return out
}

// A layout has panels whose data areas are of the same size.
type layout struct {
	title  string
	plots  []*plot.Plot
	grid   Grid
	w, h   vg.Length // of the data area of a panel
	legend *plot.Legend
}

// figure arranges panels in a grid, with a title above and a legend to the right. Rows are as high, and
// columns as wide, as the largest panel in them needs for its names.
func (l layout) figure() Figure {
	rows, columns := l.grid.size(len(l.plots))
	grid := make([][]*plot.Plot, rows)
	for j := range grid {
		grid[j] = make([]*plot.Plot, columns)
	}
	w, h := make([]vg.Length, columns), make([]vg.Length, rows)
	for i, p := range l.plots {
		row, column := l.grid.place(i)
		p.Title.Text = wrap(p.Title.TextStyle, p.Title.Text, l.w)
		for line := range strings.Lines(p.Title.Text) {
			w[column] = max(w[column], width(p.Title.TextStyle, strings.TrimRight(line, "\n")))
		}
		pw, ph := around(p, l.w, l.h)
		w[column], h[row] = max(w[column], pw), max(h[row], ph)
		grid[row][column] = p
	}
	// Aligned data areas share the widest labels of their column, wherever in the row those are.
	const gap = 14
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: gap, PadY: gap}
	name := bold(titleSize)
	names := l.grid.names(l.w, l.h)
	f := Figure{Width: 2*border + names.left - gap, Height: 2*border + names.top - gap}
	for _, x := range w {
		f.Width += x + gap
	}
	for _, y := range h {
		f.Height += y + gap
	}
	var side, top vg.Length
	if l.legend != nil {
		size := l.legend.Rectangle(draw.NewCanvas(newSVG(1, 1), 1000, 1000)).Size()
		side = size.X + gap
		f.Height = max(f.Height, size.Y+2*border)
	}
	heading := bold(titleSize + 1)
	title := wrap(heading, l.title, f.Width+side-2*border)
	if title != "" {
		size := heading.Rectangle(title).Size()
		top = size.Y + 8
		f.Width = max(f.Width, size.X+2*border-side) // a word wider than the panels
	}
	panels := f.Width
	f.Width += side
	f.Height += top
	f.draw = func(c draw.Canvas) {
		heading.XAlign, heading.YAlign = text.XLeft, text.YTop
		c.FillText(heading, vg.Point{X: border, Y: f.Height - border}, title)
		area := draw.Crop(c, border+names.left, panels-f.Width-border, border, -border-top-names.top)
		if len(l.plots) == 1 && !l.grid.named() {
			l.plots[0].Draw(area)
		} else {
			frames := plot.Align(grid, tiles, area)
			for j, row := range frames {
				for i, tile := range row {
					if grid[j][i] != nil {
						grid[j][i].Draw(tile)
					} else if l.grid.named() {
						l.grid.drawGap(tile)
					}
				}
			}
			names.draw(frames, grid, name)
		}
		if l.legend != nil {
			l.legend.Draw(draw.Crop(c, panels, 0, 0, -border-top))
		}
	}
	return f
}

// gridNames are the names of rows and columns, broken to their room.
type gridNames struct {
	rows, columns []string
	left, top     vg.Length // what they take
}

// names breaks the names of rows and columns for panels of the size w × h.
func (g Grid) names(w, h vg.Length) (n gridNames) {
	style := bold(titleSize)
	fit := func(names []string, room vg.Length) (lines []string, takes vg.Length) {
		for _, name := range names {
			line := wrap(style, name, room)
			lines = append(lines, line)
			if line != "" {
				takes = max(takes, style.Rectangle(line).Size().Y+8)
			}
		}
		return lines, takes
	}
	n.rows, n.left = fit(g.Rows, h)
	n.columns, n.top = fit(g.Columns, w)
	return n
}

// draw writes the names at the left of and above the data areas.
func (n gridNames) draw(frames [][]draw.Canvas, grid [][]*plot.Plot, style text.Style) {
	data := func(row, column int) draw.Canvas {
		if p := grid[row][column]; p != nil {
			return p.DataCanvas(frames[row][column])
		}
		return frames[row][column]
	}
	for j, name := range n.rows {
		at := data(j, 0)
		for i := range grid[j] {
			if grid[j][i] != nil {
				at = data(j, i)
				break
			}
		}
		s := style
		s.Rotation, s.XAlign, s.YAlign = quarter, text.XCenter, text.YBottom
		at.FillText(s, vg.Point{X: frames[j][0].Min.X - 6, Y: (at.Min.Y + at.Max.Y) / 2}, name)
	}
	for i, name := range n.columns {
		at := data(0, i)
		for j := range grid {
			if grid[j][i] != nil {
				at = data(j, i)
				break
			}
		}
		s := style
		s.XAlign, s.YAlign = text.XCenter, text.YBottom
		at.FillText(s, vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: frames[0][i].Max.Y + 6}, name)
	}
}

// drawGap writes why there is no panel.
func (g Grid) drawGap(c draw.Canvas) {
	if g.Gap == "" {
		return
	}
	style := words(labelSize)
	style.Color, style.XAlign, style.YAlign = Soft, text.XCenter, text.YCenter
	note := wrap(style, g.Gap, (c.Max.X-c.Min.X)*0.8)
	c.FillText(style, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2}, note)
}

// around returns the size of a plot whose data area has the size w × h.
func around(p *plot.Plot, w, h vg.Length) (vg.Length, vg.Length) {
	outerW, outerH := w, h
	for range 3 { // names that reach beyond the axis depend on its length
		outerW, outerH = max(outerW, 1), max(outerH, 1)
		c := p.DataCanvas(draw.NewCanvas(newSVG(1, 1), outerW+1000, outerH+1000))
		size := c.Size()
		outerW, outerH = w+outerW+1000-size.X, h+outerH+1000-size.Y
	}
	return outerW, outerH
}
