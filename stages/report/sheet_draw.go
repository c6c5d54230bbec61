package report

import (
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/chart"
	"github.com/runexp/runexp/stages/internal/picture"
)

// Sizes of the sheet in pixels.
const (
	labelWidth  = 132 // text next to an image
	tileGap     = 8
	scaleHeight = 14 // per line of numbers below a tile
	headHeight  = 26 // above the first row; each further line of a column's name adds nameHeight
	nameHeight  = 13
	barWidth    = 120
	barHeight   = 10
	minWidth    = 600 // fits both colour bars and their texts
	wideWidth   = 720 // the same, if they start below the images
)

// A sheet has at most 256 colours, so that it is a small file: a fixed number for each colour map, some for
// text, and the rest for photographs.
const (
	mapColours   = 49
	overHeat     = 11 // overlay: steps of the map …
	overGrey     = 8  // … times steps of grey
	textColours  = 24
	photoColours = 120 // at most
)

var blank = color.RGBA{240, 240, 240, 255}

// heads returns the lines of the columns' names, starting with the images', and the top of the first row. A
// name wider than its column is broken at a hyphen.
func (s *sheet) heads() (heads [][]string, top int) {
	c := chart.NewCanvas(1, 1)
	top = headHeight
	for _, name := range append([]string{"image"}, s.columns...) {
		lines := []string{name}
		if c.Width(chart.TitleFont, name) > s.side+tileGap-2 {
			if k := strings.LastIndexByte(name, '-'); k > 0 {
				lines = []string{name[:k+1], name[k+1:]}
				top = headHeight + nameHeight
			}
		}
		heads = append(heads, lines)
	}
	return heads, top
}

func (s *sheet) draw() []byte {
	step := s.side + tileGap
	width := 2*tileGap + labelWidth + (1+len(s.columns))*step
	s.lines = s.scaleLines()
	rowHeight := s.rowHeight()
	heads, top := s.heads()
	height := top + len(s.rows)*rowHeight + 34
	c := chart.NewCanvas(max(width, minWidth), height)
	left := tileGap + labelWidth
	keyLeft := left
	if width < wideWidth {
		keyLeft = tileGap
	}

	var photos []*picture.RGB
	for _, r := range s.rows {
		photos = append(photos, r.photo)
	}
	keep := append([]color.RGBA{blank}, s.key(c, keyLeft, top+len(s.rows)*rowHeight+4)...)
	palette := chart.Palette(photos, min(photoColours, 256-textColours-len(keep)))
	keep = append(keep, palette...)
	for i, lines := range heads {
		for k, line := range lines {
			y := top - 8 - nameHeight*(len(lines)-1-k)
			c.Text(left+i*step+s.side/2, y, chart.TitleFont, chart.Ink, chart.Center,
				c.Fit(chart.TitleFont, line, s.side+tileGap-2))
		}
	}
	for i, r := range s.rows {
		y := top + i*rowHeight
		for k, text := range r.labels {
			font, col := chart.SmallFont, chart.Soft
			if k == 0 {
				font, col = chart.TextFont, chart.Ink
			}
			c.Text(tileGap, y+14+16*k, font, col, chart.Left, c.Fit(font, text, labelWidth-8))
		}
		c.Photo(left, y, chart.Dither(r.photo, palette))
		c.Outline(image.Rect(left, y, left+s.side, y+s.side), chart.Rule)
		for k, t := range r.tiles {
			s.drawTile(c, left+(k+1)*step, y, t, s.signed[k], r.photo)
		}
	}
	return c.PNG(keep)
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

func (s *sheet) rowHeight() int { return s.side + s.lines*scaleHeight + 8 }

// scaleLines returns how many lines the numbers below a tile need.
func (s *sheet) scaleLines() int {
	c := chart.NewCanvas(1, 1)
	for _, r := range s.rows {
		for k, t := range r.tiles {
			if t != nil &&
				c.Width(chart.SmallFont, strings.Join(t.ends(s.signed[k]), " … ")) > s.side+tileGap-4 {
				return 2
			}
		}
	}
	return 1
}

// ends formats the ends of a tile's scale, or its only value.
func (t *tile) ends(signed bool) []string {
	switch {
	case t.state == "constant":
		return []string{short(t.scale)}
	case t.state != "":
		return nil
	case signed:
		return []string{"±" + short(t.scale)}
	}
	return []string{short(t.low), short(t.high)}
}

// shade returns the colour of a step.
func shade(k, n int, signed bool) color.RGBA {
	v := float64(k) / float64(n-1)
	if signed {
		v = 2*v - 1
	}
	return mapOf(signed).At(v)
}

func (s *sheet) drawTile(c *chart.Canvas, x, y int, t *tile, signed bool, photo *picture.RGB) {
	frame := image.Rect(x, y, x+s.side, y+s.side)
	if t != nil {
		lines := t.ends(signed)
		if len(lines) > s.lines {
			lines = []string{strings.Join(lines, " … ")}
		} else if len(lines) > 1 {
			lines[0] += " …"
		}
		for i, text := range lines {
			c.Text(x+s.side/2, y+s.side+12+i*(scaleHeight-2), chart.SmallFont, chart.Soft, chart.Center, text)
		}
	}
	if t == nil || t.state != "" {
		c.Fill(frame, blank)
		word := "missing"
		if t != nil {
			word = t.state
		}
		c.Text(x+s.side/2, y+s.side/2+4, chart.TextFont, chart.Soft, chart.Center, word)
		return
	}
	for i, v := range t.values {
		level := t.level(v, signed)
		col := shade(stepOf(level, mapColours), mapColours, signed)
		if s.overlay {
			col = over(level, signed, photo, i)
		}
		c.Image.SetRGBA(x+i%s.side, y+i/s.side, col)
	}
	c.Outline(frame, chart.Rule)
}

// over returns the colour of pixel i of a tile blended with the photograph in grey. Greys are dithered in a
// fixed pattern.
func over(level float64, signed bool, photo *picture.RGB, i int) color.RGBA {
	p := photo.Pix[3*i:][:3]
	luma := (299*int(p[0]) + 587*int(p[1]) + 114*int(p[2])) / 1000
	// Bayer's 4×4 matrix, "An optimum method for two-level rendition of continuous-tone pictures", 1973.
	bayer := [16]int{0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5}
	x, y := i%photo.W, i/photo.W
	grey := min((luma*(overGrey-1)*16+255*bayer[x%4+y%4*4])/(255*16), overGrey-1)
	return overShade(stepOf(level, overHeat), grey, signed)
}

// overShade blends a step of a colour map with a step of grey: the larger the value, the more opaque.
func overShade(heat, grey int, signed bool) color.RGBA {
	v := float64(heat) / (overHeat - 1)
	if signed {
		v = math.Abs(2*v - 1)
	}
	// The photograph is lightened, so that colours stand out.
	g := 70 + 170*float64(grey)/(overGrey-1)
	opaque := 0.85 * math.Sqrt(v)
	col := shade(heat, overHeat, signed)
	mix := func(a uint8) uint8 {
		return uint8(math.Round(float64(opaque*float64(a)) + float64((1-opaque)*g)))
	}
	return color.RGBA{mix(col.R), mix(col.G), mix(col.B), 255}
}

// key draws the colour bars at the bottom and returns the colours that the palette must contain.
func (s *sheet) key(c *chart.Canvas, x, y int) []color.RGBA {
	var keep []color.RGBA
	for _, signed := range []bool{false, true} {
		used := false
		for _, v := range s.signed {
			used = used || v == signed
		}
		if !used {
			continue
		}
		for i := range barWidth {
			k := i * mapColours / barWidth
			c.Fill(image.Rect(x+i, y+8, x+i+1, y+8+barHeight), shade(k, mapColours, signed))
		}
		c.Outline(image.Rect(x, y+8, x+barWidth, y+8+barHeight), chart.Rule)
		text := "between the numbers below"
		if signed {
			text = "− to + the number below a map"
		}
		c.Text(x+barWidth+8, y+17, chart.SmallFont, chart.Soft, chart.Left, text)
		x += barWidth + 8 + c.Width(chart.SmallFont, text) + 24
		if s.overlay {
			for heat := range overHeat {
				for grey := range overGrey {
					keep = append(keep, overShade(heat, grey, signed))
				}
			}
			continue
		}
		for k := range mapColours {
			keep = append(keep, shade(k, mapColours, signed))
		}
	}
	return keep
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
