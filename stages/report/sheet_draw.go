package report

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/chart"
)

// Sizes of pages of tiles in points.
const (
	tileGap     = 5
	lineHeight  = 8 // of text
	rowGap      = 7
	labelWidth  = 60 // of the ids on other axes, at most
	blockGap    = 10 // between images next to each other
	barWidth    = 70
	barHeight   = 6
	keyHeight   = 13  // of a colour bar with its margin
	leastWidth  = 250 // fits a colour bar and its text
	mapColours  = 33  // steps of a colour map; odd, so that white is one of them
	labelLines  = 4   // of a name, at most
	headPadding = 3
	border      = 4 // around a page
	hairline    = 0.5
)

var blank = color.RGBA{240, 240, 240, 255}

// A layout holds the positions of the parts of a sheet. An image has a block: ids on the left, the image,
// and lines of tiles to its right.
type layout struct {
	labels  float64 // width of the ids
	column  float64 // width of a tile with its gap
	perLine int     // tiles
	lines   int     // lines of tiles of an image
	across  int     // images next to each other
	heads   float64 // height of the columns' names
	named   bool    // names are above each tile rather than above the columns
}

func (s *sheet) layout() layout {
	l := layout{column: s.boxW + tileGap, across: 1}
	for _, r := range s.rows {
		l.labels = max(l.labels, idsWidth(r.labels))
	}
	n := len(s.columns)
	fits := func(width, of float64) int { return max(int((width+1e-9)/of), 1) }
	room := fits(s.width-2*border-l.labels-l.column+tileGap, l.column)
	l.lines = (n + room - 1) / room
	l.perLine = (n + l.lines - 1) / l.lines
	l.named = l.lines > 1 || s.sorted
	if l.lines == 1 && !s.several() {
		room := fits(s.width-2*border+tileGap+blockGap, l.blockWidth()+blockGap)
		longest := 1
		for _, section := range s.sections() {
			longest = max(longest, len(section))
		}
		high := (longest + room - 1) / room
		l.across = min((longest+high-1)/high, room)
	}
	for _, name := range s.columns {
		l.heads = max(l.heads, lineHeight*float64(len(l.name(s.names[name]))))
	}
	return l
}

// idsWidth returns the width of the names on the left of a row.
func idsWidth(labels []string) (width float64) {
	for _, label := range labels {
		for _, line := range chart.TextFont.Wrap(label, labelWidth, labelLines) {
			width = max(width, chart.TextFont.Width(line)+tileGap)
		}
	}
	return width
}

// writeIDs writes names below each other.
func writeIDs(page *chart.Page, x, y float64, labels []string) {
	for _, label := range labels {
		for _, line := range chart.TextFont.Wrap(label, labelWidth, labelLines) {
			page.Text(x, y+lineHeight-1, chart.TextFont, chart.Ink, chart.Left, line)
			y += lineHeight + 1
		}
	}
}

// several reports whether an image has several rows.
func (s *sheet) several() bool {
	for i := 1; i < len(s.rows); i++ {
		if s.rows[i].choice.id == s.rows[i-1].choice.id {
			return true
		}
	}
	return false
}

// sections returns the rows in groups that begin on a new line: the best and the worst.
func (s *sheet) sections() [][]*sheetRow {
	var out [][]*sheetRow
	for i, r := range s.rows {
		if i == 0 || r.choice.end != s.rows[i-1].choice.end {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

func (l *layout) blockWidth() float64 { return l.labels + float64(1+l.perLine)*l.column }

// name returns the lines of a column's name.
func (l *layout) name(name string) []string {
	return chart.TitleFont.Wrap(name, l.column-1, labelLines)
}

// A line is a line of text in one of the sheet's fonts.
type line struct {
	text string
	font chart.Font
	col  color.RGBA
}

// below returns the lines below a tile.
func (l *layout) below(t *tile) (lines []line) {
	if t == nil {
		return nil
	}
	add := func(text string, col color.RGBA) {
		for _, part := range chart.SmallFont.Wrap(text, l.column-1, labelLines) {
			lines = append(lines, line{part, chart.SmallFont, col})
		}
	}
	for _, x := range t.scores {
		add(strings.TrimSpace(x.name+" "+decimals(x.value)), chart.Ink)
	}
	switch {
	case t.state == "constant":
		add(short(t.only), chart.Soft)
	case t.state == "":
		add(t.scale.ends(), chart.Soft)
	}
	return lines
}

// notes returns the lines below an image.
func (l *layout) notes(r *sheetRow) (lines []line) {
	if r.again {
		return nil
	}
	for i, note := range r.notes {
		col := chart.Soft
		if i == 0 && len(r.notes) > 1 {
			col = chart.Ink
		}
		for _, part := range chart.SmallFont.Wrap(note, l.column-1, labelLines) {
			lines = append(lines, line{part, chart.SmallFont, col})
		}
	}
	return lines
}

// lineHeights returns the heights of the text below the tiles of each line of a block. The notes of the
// image may extend into the next lines.
func (l *layout) lineHeights(r *sheetRow) []float64 {
	heights := make([]float64, l.lines)
	for i, t := range r.tiles {
		heights[i/l.perLine] = max(heights[i/l.perLine], lineHeight*float64(len(l.below(t))))
	}
	return heights
}

// blockHeight returns the height of an image with its maps.
func (s *sheet) blockHeight(l *layout, r *sheetRow) float64 {
	height := 0.0
	for i, h := range l.lineHeights(r) {
		if height += s.boxH + h; i > 0 {
			height += headPadding
		}
		if l.named {
			height += l.heads + headPadding
		}
	}
	image := s.boxH + lineHeight*float64(len(l.notes(r)))
	if l.named {
		image += l.heads + headPadding
	}
	return max(height, image) + rowGap
}

// draw returns the page of the sheet.
func (s *sheet) draw() *chart.Page {
	l := s.layout()
	sections := s.sections()
	top := float64(border)
	if !l.named {
		top += max(l.heads, lineHeight) + headPadding
	}
	height := top
	lines := func(section []*sheetRow, each func(rows []*sheetRow, tallest float64)) {
		for i := 0; i < len(section); i += l.across {
			rows, tallest := section[i:min(i+l.across, len(section))], 0.0
			for _, r := range rows {
				tallest = max(tallest, s.blockHeight(&l, r))
			}
			each(rows, tallest)
		}
	}
	for _, section := range sections {
		if section[0].choice.end != "" {
			height += lineHeight + rowGap
		}
		lines(section, func(_ []*sheetRow, tallest float64) { height += tallest })
	}
	page := &chart.Page{Height: height + s.key(nil, 0, 0) + border,
		Width: max(2*border+float64(l.across)*(l.blockWidth()+blockGap)-blockGap-tileGap, leastWidth)}
	block := func(k int) float64 { return border + float64(k)*(l.blockWidth()+blockGap) }
	if !l.named {
		for k := range l.across {
			for i, name := range s.columns {
				l.head(page, block(k)+l.labels+float64(1+i)*l.column, top-headPadding, s.boxW, s.names[name])
			}
		}
	}
	y := top
	for _, section := range sections {
		if end := section[0].choice.end; end != "" {
			page.Text(border, y+lineHeight, chart.TitleFont, chart.Ink, chart.Left, end)
			y += lineHeight + rowGap
		}
		lines(section, func(rows []*sheetRow, tallest float64) {
			for k, r := range rows {
				s.drawBlock(page, &l, block(k), y, r)
			}
			y += tallest
		})
	}
	s.key(page, border, y)
	return page
}

// head writes the name of a column above a tile, with its last line at the base line y.
func (l *layout) head(page *chart.Page, x, y, width float64, name string) {
	lines := l.name(name)
	for i, text := range lines {
		page.Text(x+width/2, y-lineHeight*float64(len(lines)-1-i), chart.TitleFont, chart.Ink, chart.Center,
			text)
	}
}

// drawBlock draws an image with its maps.
func (s *sheet) drawBlock(page *chart.Page, l *layout, x, y float64, r *sheetRow) {
	if l.named {
		y += l.heads + headPadding
	}
	writeIDs(page, x, y, r.labels)
	x += l.labels
	photo, ground := chart.Photo(r.photo), (*chart.Raster)(nil)
	if s.overlay {
		ground = chart.Photo(paleGrey(r.photo))
	}
	if !r.again {
		frame := s.frame(r, x, y)
		page.Image(frame, photo)
		page.Outline(frame, hairline, chart.Rule)
		r.outline.draw(page, frame)
	}
	write := func(x, y float64, lines []line) {
		for i, line := range lines {
			page.Text(x+s.boxW/2, y+s.boxH+lineHeight*float64(i+1)-1, line.font, line.col, chart.Center,
				line.text)
		}
	}
	write(x, y, l.notes(r))
	heights := l.lineHeights(r)
	for i, t := range r.tiles {
		if i > 0 && i%l.perLine == 0 {
			y += s.boxH + heights[i/l.perLine-1] + headPadding
			if l.named {
				y += l.heads + headPadding
			}
		}
		tx := x + float64(1+i%l.perLine)*l.column
		if name := s.columns[i]; l.named {
			if t != nil {
				name = t.column
			}
			if t != nil || !s.sorted {
				l.head(page, tx, y-headPadding, s.boxW, s.names[name])
			}
		}
		s.drawTile(page, tx, y, t, r, ground)
		write(tx, y, l.below(t))
	}
}

// frame returns the rectangle of a row's image or map in a box at (x, y).
func (s *sheet) frame(r *sheetRow, x, y float64) chart.Rect {
	w, h := float64(r.photo.W), float64(r.photo.H)
	scale := min(s.boxW/w, s.boxH/h)
	return chart.Rect{X: x + (s.boxW-scale*w)/2, Y: y + (s.boxH-scale*h)/2, W: scale * w, H: scale * h}
}

func mapOf(signed bool) chart.ColourMap {
	if signed {
		return chart.Diverging()
	}
	return chart.Sequential()
}

// stepOf quantises a position on a colour map to n steps; if n is odd, the middle of a signed map is one of
// them.
func stepOf(level float64, n int) int { return int(math.Round(level * float64(n-1))) }

// shade returns the colour of a step.
func shade(k, n int, signed bool) color.RGBA {
	v := float64(k) / float64(n-1)
	if signed {
		v = 2*v - 1
	}
	return mapOf(signed).At(v)
}

// palette returns the colours of maps' steps. Above an image, larger values are more opaque.
func palette(signed, overlay bool) (list []color.NRGBA) {
	for k := range mapColours {
		c := shade(k, mapColours, signed)
		opacity := 1.0
		if overlay {
			v := float64(k) / (mapColours - 1)
			if signed {
				v = math.Abs(float64(2*v) - 1)
			}
			opacity = 0.85 * math.Sqrt(v)
		}
		list = append(list, color.NRGBA{c.R, c.G, c.B, uint8(math.Round(255 * opacity))})
	}
	return list
}

// setScales gives each map its scale: its own, or the scale of its column or of the sheet.
func (s *sheet) setScales() {
	groups := map[string][]*tile{}
	signed := false // any
	for i, r := range s.rows {
		for k, t := range r.tiles {
			if t == nil || t.state != "" {
				continue
			}
			key := fmt.Sprintf("%d %d", i, k)
			switch s.sharing {
			case "column":
				key = t.column
			case "sheet":
				key = ""
			}
			groups[key] = append(groups[key], t)
			signed = signed || s.signed[t.column]
		}
	}
	for _, group := range groups {
		of := scaleFor(s.signed[group[0].column] || s.sharing == "sheet" && signed, group...)
		for _, t := range group {
			t.scale = of
		}
	}
}

// drawTile draws a map in the middle of a box, on top of ground if that is set, or a word in its place.
func (s *sheet) drawTile(page *chart.Page, x, y float64, t *tile, r *sheetRow, ground *chart.Raster) {
	frame := s.frame(r, x, y)
	if t == nil || t.state != "" {
		page.Fill(frame, blank)
		word := "missing"
		if t != nil {
			word = t.state
		}
		page.Text(x+s.boxW/2, y+s.boxH/2+2.5, chart.TextFont, chart.Soft, chart.Center, word)
		return
	}
	steps := make([]uint8, len(t.values))
	for i, v := range t.values {
		steps[i] = uint8(stepOf(t.scale.level(float64(v)), mapColours))
	}
	if ground != nil {
		page.Image(frame, ground)
	}
	page.Image(frame, chart.Indexed(t.w, t.h, steps, palette(t.scale.signed, s.overlay)))
	page.Outline(frame, hairline, chart.Rule)
	r.outline.draw(page, frame)
}

// key draws the colour bars, one below the other, and returns their height. Without a page it only measures.
func (s *sheet) key(page *chart.Page, x, y float64) (height float64) {
	for _, signed := range []bool{false, true} {
		var first *scale
		for _, r := range s.rows {
			for _, t := range r.tiles {
				if t != nil && t.scale != nil && t.scale.signed == signed && first == nil {
					first = t.scale
				}
			}
		}
		if first == nil {
			continue
		}
		if height += keyHeight; page == nil {
			continue
		}
		text := "from the lower to the upper number below a map"
		switch {
		case s.sharing == "sheet":
			text = first.ends()
		case signed:
			text = "against and for the class, to ± the number"
		}
		drawKey(page, x, y, palette(signed, false), text)
		y += keyHeight
	}
	return height
}

// drawKey draws a bar of colours with a text next to it.
func drawKey(page *chart.Page, x, y float64, colours []color.NRGBA, text string) {
	bar := make([]uint8, len(colours))
	for i := range bar {
		bar[i] = uint8(i)
	}
	frame := chart.Rect{X: x, Y: y + 3, W: barWidth, H: barHeight}
	page.Image(frame, chart.Indexed(len(bar), 1, bar, colours))
	page.Outline(frame, hairline, chart.Rule)
	page.Text(x+barWidth+5, y+3+barHeight-0.5, chart.SmallFont, chart.Soft, chart.Left, text)
}

// decimals formats a score or a probability.
func decimals(v float64) string {
	switch {
	case math.IsNaN(v):
		return "undefined"
	case v != 0 && math.Abs(v) < 0.0005 || math.Abs(v) >= 1000:
		return short(v)
	}
	return strings.Replace(strconv.FormatFloat(v, 'f', 3, 64), "-", "−", 1)
}

// short formats a number in a few characters.
func short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0:
		return "−" + short(-v)
	case v >= 0.00095 && v < 9.95:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case v >= 1 && v < 99999:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	s := strconv.FormatFloat(v, 'e', 1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	n, _ := strconv.Atoi(exponent) // can't fail: FormatFloat wrote it
	return mantissa + "e" + strings.Replace(strconv.Itoa(n), "-", "−", 1)
}
