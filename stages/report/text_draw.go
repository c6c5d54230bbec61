package report

import (
	"image/color"
	"math"
	"strings"

	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/spans"
)

// Sizes of pages of texts in points.
const (
	nameWidth  = 70 // of the names of rows, at most
	nameGap    = 10 // right of them
	bandGap    = 5  // between maps of a text
	blockSpace = 9  // between texts
	noteGap    = 8  // between notes above a text
	wordPad    = 0.9
	pieceGap   = 0.25 // at the edge of a piece of a word
	textSteps  = 32   // of a colour map on either side of 0
)

// room returns the width of a line of text.
func (s *textPage) room() float64 {
	return max(float64(s.Width)-s.left()-border-2*wordPad, 8*s.Size)
}

// left returns where texts begin.
func (s *textPage) left() float64 {
	wide := 0.0
	for _, id := range s.rows {
		for _, line := range chart.TitleFont.Wrap(s.names[id], nameWidth, labelLines) {
			wide = max(wide, chart.TitleFont.Width(line))
		}
	}
	for _, b := range s.blocks {
		for _, t := range b.tiles {
			for _, line := range s.side(t) {
				wide = max(wide, line.font.Width(line.text))
			}
		}
	}
	return border + wide + nameGap
}

func (s *textPage) valueFont() chart.Font { return chart.Font{Size: max(0.62*s.Size, 4)} }

// valueText formats the value of a token.
func valueText(v float32) string {
	if math.IsNaN(float64(v)) {
		return "–"
	}
	return short(float64(v))
}

// pitch returns the distance of lines.
func (s *textPage) pitch() float64 {
	if s.Values {
		return 2.3 * s.Size
	}
	return 1.6 * s.Size
}

// side returns the lines on the left of a map: its name, its score and the end of its colours.
func (s *textPage) side(t *tile) (lines []line) {
	if t == nil {
		return nil
	}
	for _, part := range chart.TitleFont.Wrap(s.names[t.column], nameWidth, labelLines) {
		lines = append(lines, line{part, chart.TitleFont, chart.Ink})
	}
	add := func(text string, col color.RGBA) {
		for _, part := range chart.SmallFont.Wrap(text, nameWidth, labelLines) {
			lines = append(lines, line{part, chart.SmallFont, col})
		}
	}
	for _, x := range t.scores {
		add(strings.TrimSpace(x.name+" "+decimals(x.value)), chart.Ink)
	}
	if s.Scale != "figure" {
		add(endsOfText(t.scale), chart.Soft)
	}
	return lines
}

// endsOfText formats the values at the ends of the colours.
func endsOfText(c *scale) string {
	switch {
	case c.high == 0:
		return "0"
	case c.signed:
		return "±" + short(c.high)
	}
	return "0 … " + short(c.high)
}

// missingRow returns a map that is missing, under its name.
func (s *textPage) missingRow(b *textBlock, i int) []line {
	name := ""
	if s.Order == "written" {
		name = s.names[s.rows[i]]
	}
	return []line{{name, chart.TitleFont, chart.Ink}}
}

// bandHeight returns the height of a map of a text.
func (s *textPage) bandHeight(b *textBlock, t *tile) float64 {
	if t == nil {
		return s.pitch()
	}
	return max(s.pitch()*float64(len(b.flow.lines)), lineHeight*float64(len(s.side(t))))
}

// draw returns the page of the texts.
func (s *textPage) draw() *chart.Page {
	left, width, height := s.left(), 0.0, float64(border)
	for i, b := range s.blocks {
		width = max(width, b.flow.width)
		if len(b.notes) > 0 {
			heads := -float64(noteGap)
			for _, part := range s.head(b) {
				heads += part.font.Width(part.text) + noteGap
			}
			width = max(width, heads)
		}
		height += s.headHeight(i, left)
		for _, t := range b.tiles {
			height += s.bandHeight(b, t) + bandGap
		}
		height += blockSpace
	}
	page := &chart.Page{Width: max(left+width+border+2*wordPad, leastWidth)}
	page.Height = height + s.textKey(nil, 0, 0) + border
	y := float64(border)
	for i, b := range s.blocks {
		if i > 0 {
			page.Fill(chart.Rect{X: border, Y: y - blockSpace/2, W: page.Width - 2*border, H: hairline},
				chart.Rule)
		}
		y += s.drawHead(page, i, left, y)
		for k, t := range b.tiles {
			lines := s.missingRow(b, k)
			if t != nil {
				lines = s.side(t)
			}
			for j, line := range lines {
				page.Text(border, y+lineHeight*float64(j)+s.Size-1, line.font, line.col, chart.Left,
					line.text)
			}
			if t == nil {
				page.Text(left, y+s.Size, chart.TextFont, chart.Soft, chart.Left, "missing")
			} else {
				s.drawText(page, left, y, page.Width-border-2*wordPad-left, b, t)
			}
			y += s.bandHeight(b, t) + bandGap
		}
		y += blockSpace
	}
	s.textKey(page, border, y-blockSpace/2)
	return page
}

// headHeight returns the height of what stands above a text.
func (s *textPage) headHeight(i int, left float64) (height float64) {
	return s.drawHead(nil, i, left, 0)
}

// drawHead writes the notes above a text, next to each other, and returns their height. Without a page it
// only measures.
func (s *textPage) drawHead(page *chart.Page, i int, left, y float64) (height float64) {
	b := s.blocks[i]
	if end := b.choice.end; end != "" && (i == 0 || end != s.blocks[i-1].choice.end) {
		if height += lineHeight + rowGap; page != nil {
			page.Text(border, y+lineHeight, chart.TitleFont, chart.Ink, chart.Left, end)
		}
	}
	if len(b.notes) == 0 {
		return height
	}
	if page != nil {
		x := left
		for _, part := range s.head(b) {
			page.Text(x, y+height+lineHeight, part.font, part.col, chart.Left, part.text)
			x += part.font.Width(part.text) + noteGap
		}
	}
	return height + lineHeight + rowGap
}

// head returns the notes above a text, the first one bold.
func (s *textPage) head(b *textBlock) (parts []line) {
	room := s.room()
	for i, note := range []string{b.notes[0], strings.Join(b.notes[1:], " · ")} {
		part := line{font: chart.TitleFont, col: chart.Ink}
		if i > 0 {
			part = line{font: chart.TextFont, col: chart.Soft}
		}
		for _, part.text = range part.font.Wrap(note, max(room, 10), 1) {
			parts = append(parts, part)
			room -= part.font.Width(part.text) + noteGap
		}
	}
	return parts
}

// ground returns the colour behind a span, and that of its text. ok is false for the paper's own.
func (s *textPage) ground(b *textBlock, t *tile, span int) (ground, ink color.RGBA, ok bool) {
	ink = chart.Ink
	switch b.spans[span].Kind {
	case spans.Between:
		return chart.White, ink, false
	case spans.Beyond:
		return chart.White, chart.Soft, false
	case spans.Spelled, spans.Special:
		ink = chart.Soft
	}
	v := float64(t.values[span])
	if math.IsNaN(v) {
		return blank, chart.Soft, true
	}
	k := stepOfText(t.scale, v)
	if k == 0 {
		return chart.White, ink, false
	}
	ground = chart.Highlight().At(float64(k) / textSteps)
	if on := chart.On(ground); on != chart.Ink {
		ink = on
	}
	return ground, ink, true
}

// stepOfText returns the step of a colour on either side of 0.
func stepOfText(c *scale, v float64) int {
	if c.high == 0 {
		return 0
	}
	return int(math.Round(textSteps * min(max(v/c.high, -1), 1)))
}

// drawText draws a text in the colours of a map.
func (s *textPage) drawText(page *chart.Page, left, top, width float64, b *textBlock, t *tile) {
	font, small := chart.Font{Size: s.Size}, s.valueFont()
	numbered := map[int]bool{}
	for i, line := range b.flow.lines {
		y := top + s.pitch()*float64(i) // of the upper edge; the base line is a size below
		x := left
		if b.flow.rightToLeft && len(line) > 0 {
			last := line[len(line)-1]
			x += width - last.x - last.width
		}
		for k := 0; k < len(line); {
			to := k + 1
			for to < len(line) && line[to].span == line[k].span && line[to].space == line[k].space {
				to++
			}
			s.drawGround(page, x, y, line, k, to, b, t)
			k = to
		}
		for _, a := range line {
			_, ink, _ := s.ground(b, t, a.span)
			wide := font.Reach(a.text)
			if strings.TrimSpace(a.text) != "" {
				page.Run(x+a.x+(a.width-wide)/2, y+s.Size, font, ink, a.level%2 == 1, a.text)
			}
			if tokens := b.spans[a.span].Tokens; s.Values && !a.space && tokens != nil && !numbered[a.span] {
				numbered[a.span] = true
				page.Text(x+a.x+a.width/2, y+1.3*s.Size+small.Size, small, chart.Soft, chart.Center,
					valueText(t.values[a.span]))
			}
		}
	}
}

// drawGround draws the area behind the atoms k to to−1 of a line, which are of one span.
func (s *textPage) drawGround(page *chart.Page, x, y float64, line []atom, k, to int, b *textBlock, t *tile) {
	ground, _, coloured := s.ground(b, t, line[k].span)
	if line[k].space {
		return
	}
	open := func(i int) bool {
		return i < 0 || i >= len(line) || line[i].space || b.spans[line[i].span].Tokens == nil
	}
	from, end := x+line[k].x+pieceGap, x+line[to-1].x+line[to-1].width-pieceGap
	if open(k - 1) {
		from -= pieceGap + wordPad
	}
	if open(to) {
		end += pieceGap + wordPad
	}
	if coloured {
		page.Fill(chart.Rect{X: from, Y: y, W: end - from, H: 1.3 * s.Size}, ground)
	}
	if b.marked[line[k].span] {
		page.Fill(chart.Rect{X: from, Y: y + 1.18*s.Size, W: end - from, H: 0.1 * s.Size}, chart.Ink)
	}
}

// textKey draws the colour bar and returns its height. Without a page it only measures.
func (s *textPage) textKey(page *chart.Page, x, y float64) float64 {
	signed := false
	var first *scale
	for _, b := range s.blocks {
		for _, t := range b.tiles {
			if t != nil {
				first, signed = t.scale, signed || t.scale.signed
			}
		}
	}
	if page == nil {
		return keyHeight
	}
	least := 0
	if signed {
		least = -textSteps
	}
	bar := chart.Rect{X: x, Y: y + 3, W: barWidth, H: barHeight}
	for k := least; k <= textSteps; k++ { // each up to the right end, below the next one: no edge is blended
		part := bar
		part.X += barWidth * float64(k-least) / float64(textSteps-least+1)
		part.W = bar.X + barWidth - part.X
		page.Fill(part, chart.Highlight().At(float64(k)/textSteps))
	}
	page.Outline(bar, hairline, chart.Rule)
	text := "against and for the class, to ± the number on the left"
	switch {
	case s.Scale == "figure":
		text = endsOfText(first)
	case !signed:
		text = "from 0 to the number on the left"
	}
	page.Text(x+barWidth+5, y+3+barHeight-0.5, chart.SmallFont, chart.Soft, chart.Left, text)
	return keyHeight
}
