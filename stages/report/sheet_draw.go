package report

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/chart"
)

// Sizes of the sheet in pixels.
const (
	tileGap     = 8
	lineHeight  = 13 // of text
	rowGap      = 12
	fullWidth   = 1320 // at which a line of tiles is broken
	labelWidth  = 110  // of the ids on other axes, at most
	blockGap    = 20   // between images next to each other
	barWidth    = 120
	barHeight   = 10
	keyHeight   = 22  // of a colour bar with its margin
	leastWidth  = 440 // fits a colour bar and its text
	mapColours  = 49  // steps of a colour map; odd, so that white is one of them
	labelLines  = 4   // of a name, at most
	headPadding = 6
)

var blank = color.RGBA{240, 240, 240, 255}

// A layout is where the parts of a sheet go. An image takes a block: ids on the left, the image, and lines of
// tiles to its right.
type layout struct {
	c       *chart.Canvas // to measure
	labels  int           // width of the ids
	column  int           // width of a tile with its gap
	perLine int           // tiles
	lines   int           // lines of tiles of an image
	across  int           // images next to each other
	heads   int           // height of the columns' names
	named   bool          // names stand above each tile rather than above the columns
}

func (s *sheet) layout() layout {
	l := layout{c: chart.NewCanvas(1, 1), column: s.boxW + tileGap, across: 1}
	for _, r := range s.rows {
		for _, id := range r.ids {
			for _, line := range l.c.Wrap(chart.TextFont, id, labelWidth, labelLines) {
				l.labels = max(l.labels, l.c.Width(chart.TextFont, line)+tileGap)
			}
		}
	}
	n := len(s.columns)
	room := max((fullWidth-2*tileGap-l.labels-l.column)/l.column, 1)
	l.lines = (n + room - 1) / room
	l.perLine = (n + l.lines - 1) / l.lines
	l.named = l.lines > 1 || s.sorted
	if block := l.blockWidth() + blockGap; l.lines == 1 && !s.several() {
		room := max((fullWidth-2*tileGap+blockGap)/block, 1)
		longest := 1
		for _, section := range s.sections() {
			longest = max(longest, len(section))
		}
		high := (longest + room - 1) / room
		l.across = min((longest+high-1)/high, room)
	}
	for _, name := range s.columns {
		l.heads = max(l.heads, lineHeight*len(l.name(name)))
	}
	return l
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

// sections returns the rows in parts that begin on a new line: the best and the worst.
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

func (l *layout) blockWidth() int { return l.labels + (1+l.perLine)*l.column }

// name returns the lines of a column's name.
func (l *layout) name(name string) []string {
	return l.c.Wrap(chart.TitleFont, name, l.column-2, labelLines)
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
		for _, part := range l.c.Wrap(chart.SmallFont, text, l.column-2, labelLines) {
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
		font, col := chart.SmallFont, chart.Soft
		if i == 0 && len(r.notes) > 1 {
			col = chart.Ink
		}
		for _, part := range l.c.Wrap(font, note, l.column-2, labelLines) {
			lines = append(lines, line{part, font, col})
		}
	}
	return lines
}

// lineHeights returns the heights of the text below the tiles of each line of a block. The notes of the image
// may reach down into the next lines.
func (l *layout) lineHeights(r *sheetRow) []int {
	heights := make([]int, l.lines)
	for i, t := range r.tiles {
		heights[i/l.perLine] = max(heights[i/l.perLine], lineHeight*len(l.below(t)))
	}
	return heights
}

// blockHeight returns the height of an image with its maps.
func (s *sheet) blockHeight(l *layout, r *sheetRow) int {
	height := 0
	for i, h := range l.lineHeights(r) {
		if height += s.boxH + h; i > 0 {
			height += headPadding
		}
		if l.named {
			height += l.heads + headPadding
		}
	}
	image := s.boxH + lineHeight*len(l.notes(r))
	if l.named {
		image += l.heads + headPadding
	}
	return max(height, image) + rowGap
}

func (s *sheet) draw() []byte {
	l := s.layout()
	sections := s.sections()
	top := tileGap + headPadding
	if !l.named {
		top += max(l.heads, lineHeight)
	}
	height := top
	for _, section := range sections {
		if section[0].choice.end != "" {
			height += lineHeight + rowGap
		}
		for i := 0; i < len(section); i += l.across {
			tallest := 0
			for _, r := range section[i:min(i+l.across, len(section))] {
				tallest = max(tallest, s.blockHeight(&l, r))
			}
			height += tallest
		}
	}
	width := max(2*tileGap+l.across*l.blockWidth()+(l.across-1)*blockGap, leastWidth)
	c := chart.NewCanvas(width, height+s.key(nil, 0, 0))
	block := func(k int) int { return tileGap + k*(l.blockWidth()+blockGap) }
	if !l.named {
		for k := range l.across {
			for i, name := range s.columns {
				l.head(c, block(k)+l.labels+(1+i)*l.column, top-headPadding, s.boxW, name)
			}
		}
	}
	y := top
	for _, section := range sections {
		if end := section[0].choice.end; end != "" {
			c.Text(tileGap, y+lineHeight, chart.TitleFont, chart.Ink, chart.Left, end)
			y += lineHeight + rowGap
		}
		for i := 0; i < len(section); i += l.across {
			tallest := 0
			for k, r := range section[i:min(i+l.across, len(section))] {
				s.drawBlock(c, &l, block(k), y, r)
				tallest = max(tallest, s.blockHeight(&l, r))
			}
			y += tallest
		}
	}
	s.key(c, tileGap, y+4)
	return c.TrueColour()
}

// head writes the name of a column above a tile, with its last line at the base line y.
func (l *layout) head(c *chart.Canvas, x, y, width int, name string) {
	lines := l.name(name)
	for i, text := range lines {
		c.Text(x+width/2, y-lineHeight*(len(lines)-1-i), chart.TitleFont, chart.Ink, chart.Center, text)
	}
}

// drawBlock draws an image with its maps.
func (s *sheet) drawBlock(c *chart.Canvas, l *layout, x, y int, r *sheetRow) {
	if l.named {
		y += l.heads + headPadding
	}
	down := y + 12
	for _, id := range r.ids {
		for _, text := range l.c.Wrap(chart.TextFont, id, labelWidth, labelLines) {
			c.Text(x, down, chart.TextFont, chart.Ink, chart.Left, text)
			down += lineHeight + 2
		}
	}
	x += l.labels
	if !r.again {
		frame := s.frame(r, image.Pt(x, y))
		c.Photo(frame.Min.X, frame.Min.Y, r.photo)
		c.Outline(frame, chart.Rule)
		r.outline.draw(c, frame)
	}
	write := func(x, y int, lines []line) {
		for i, line := range lines {
			c.Text(x+s.boxW/2, y+s.boxH+lineHeight*(i+1), line.font, line.col, chart.Center, line.text)
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
		tx := x + (1+i%l.perLine)*l.column
		if name := s.columns[i]; l.named {
			if t != nil {
				name = t.column
			}
			if t != nil || !s.sorted {
				l.head(c, tx, y-headPadding, s.boxW, name)
			}
		}
		s.drawTile(c, image.Rect(tx, y, tx+s.boxW, y+s.boxH), t, r)
		write(tx, y, l.below(t))
	}
}

// frame returns where the image or a map of a row is drawn in a box at p.
func (s *sheet) frame(r *sheetRow, p image.Point) image.Rectangle {
	centre := image.Pt((s.boxW-r.photo.W)/2, (s.boxH-r.photo.H)/2)
	return image.Rect(0, 0, r.photo.W, r.photo.H).Add(p).Add(centre)
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

// setScales gives each map its scale: its own, or that of its column or of the sheet.
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

// drawTile draws a map in the middle of a box, or a word in its place.
func (s *sheet) drawTile(c *chart.Canvas, box image.Rectangle, t *tile, r *sheetRow) {
	frame := s.frame(r, box.Min)
	if t == nil || t.state != "" {
		c.Fill(frame, blank)
		word := "missing"
		if t != nil {
			word = t.state
		}
		c.Text(box.Min.X+box.Dx()/2, box.Min.Y+box.Dy()/2+4, chart.TextFont, chart.Soft, chart.Center, word)
		return
	}
	signed := t.scale.signed
	for i, v := range t.values {
		level := t.scale.level(v)
		col := shade(stepOf(level, mapColours), mapColours, signed)
		if s.overlay {
			col = over(level, signed, r.photo.Pix[3*i:][:3])
		}
		c.Image.SetRGBA(frame.Min.X+i%t.w, frame.Min.Y+i/t.w, col)
	}
	c.Outline(frame, chart.Rule)
	r.outline.draw(c, frame)
}

// over blends a colour with a pixel of the photograph in grey: the larger the value, the more opaque.
func over(level float64, signed bool, pixel []uint8) color.RGBA {
	v := level
	if signed {
		v = math.Abs(float64(2*v) - 1)
	}
	luma := (299*int(pixel[0]) + 587*int(pixel[1]) + 114*int(pixel[2])) / 1000
	// The photograph is lightened, so that colours stand out.
	grey := 70 + float64(170*float64(luma)/255)
	opaque := 0.85 * math.Sqrt(v)
	col := shade(stepOf(level, mapColours), mapColours, signed)
	mix := func(a uint8) uint8 {
		return uint8(math.Round(float64(opaque*float64(a)) + float64((1-opaque)*grey)))
	}
	return color.RGBA{mix(col.R), mix(col.G), mix(col.B), 255}
}

// key draws the colour bars, one below the other, and returns their height. Without a canvas it only
// measures.
func (s *sheet) key(c *chart.Canvas, x, y int) (height int) {
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
		if height += keyHeight; c == nil {
			continue
		}
		for i := range barWidth {
			c.Fill(image.Rect(x+i, y, x+i+1, y+barHeight), shade(i*mapColours/barWidth, mapColours, signed))
		}
		c.Outline(image.Rect(x, y, x+barWidth, y+barHeight), chart.Rule)
		text := "from the lower to the upper number below a map"
		switch {
		case s.sharing == "sheet":
			text = first.ends()
		case signed:
			text = "against and for the class, to ± the number"
		}
		c.Text(x+barWidth+8, y+9, chart.SmallFont, chart.Soft, chart.Left, text)
		y += keyHeight
	}
	return height
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
