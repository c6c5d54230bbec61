package chart

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// A pdf is a canvas of gonum's plots that writes a PDF file of one page. Other than gonum's own it embeds of
// a font only the glyphs that occur, with their characters, so that any text can be selected and searched,
// and it writes the same file for the same drawing: it has no date and no random identifier. Coordinates are
// rounded to 1/100 point. The library of gonum's canvas, go-pdf/fpdf 0.11.1, can't take its place: it panics
// at a character beyond 16 bits, keeps of a palette's opacities at most one colour without any, and its
// figures have two to three times as many bytes, since the fonts keep their instructions.
type pdf struct {
	pens
	w, h  vg.Length
	page  bytes.Buffer
	drawn map[string]string // by operator, what is in force on the page
	fonts []*subset
	alpha []string // opacities, in the order of their names

	images []*Raster
}

func newPDF(w, h vg.Length) *pdf {
	c := &pdf{w: w, h: h, drawn: map[string]string{}}
	c.state.matrix = [6]float64{1, 0, 0, 1, 0, 0}
	vg.Initialize(c)
	return c
}

// set writes an operator unless the page is in that state already.
func (c *pdf) set(operator, operands string) {
	if c.drawn[operator] != operands {
		c.drawn[operator] = operands
		fmt.Fprintf(&c.page, "%s %s\n", operands, operator)
	}
}

// paint sets the colour of lines (RG) or areas (rg), and their opacity.
func (c *pdf) paint(operator string) {
	n := color.NRGBAModel.Convert(c.state.colour).(color.NRGBA)
	share := func(v uint8) string { return thousandth(float64(v) / 255) }
	c.set(operator, share(n.R)+" "+share(n.G)+" "+share(n.B))
	opacity := decimal(float64(n.A) / 255)
	for i, a := range c.alpha {
		if a == opacity {
			c.set("gs", fmt.Sprintf("/A%d", i))
			return
		}
	}
	if opacity != "1" || len(c.alpha) > 0 {
		c.alpha = append(c.alpha, opacity)
		c.set("gs", fmt.Sprintf("/A%d", len(c.alpha)-1))
	}
}

func (c *pdf) Stroke(p vg.Path) {
	if !c.strokes() {
		return
	}
	c.paint("RG")
	c.set("w", decimal(float64(c.state.width)))
	var dash []string
	for _, l := range c.state.dash {
		dash = append(dash, decimal(float64(l)))
	}
	c.set("d", "["+strings.Join(dash, " ")+"] 0")
	c.path(p)
	c.page.WriteString("S\n")
}

func (c *pdf) Fill(p vg.Path) {
	c.paint("rg")
	c.path(p)
	c.page.WriteString("f\n")
}

func (c *pdf) path(p vg.Path) {
	var now vg.Point
	put := func(operator string, points ...vg.Point) {
		for _, q := range points {
			x, y := c.at(q)
			c.page.WriteString(decimal(x) + " " + decimal(y) + " ")
			now = q
		}
		c.page.WriteString(operator + "\n")
	}
	for i, s := range p {
		switch s.Type {
		case vg.MoveComp:
			put("m", s.Pos)
		case vg.LineComp:
			put("l", s.Pos)
		case vg.CurveComp:
			a, b := s.Control[0], s.Control[len(s.Control)-1]
			if len(s.Control) == 1 { // two thirds of the way to the control point of a parabola
				b = vg.Point{X: s.Pos.X + 2*(a.X-s.Pos.X)/3, Y: s.Pos.Y + 2*(a.Y-s.Pos.Y)/3}
				a = vg.Point{X: now.X + 2*(a.X-now.X)/3, Y: now.Y + 2*(a.Y-now.Y)/3}
			}
			put("c", a, b, s.Pos)
		case vg.ArcComp:
			put([]string{"m", "l"}[min(i, 1)], onArc(s, s.Start))
			// Quarters of a circle and less are cubic curves to 1/3000 of the radius.
			parts := math.Ceil(math.Abs(s.Angle)/quarter - 1e-9)
			step := s.Angle / max(parts, 1)
			reach := s.Radius * vg.Length(4./3*math.Tan(step/4))
			for k := range int(parts) {
				from, to := s.Start+float64(k)*step, s.Start+float64(k+1)*step
				a, b := onArc(s, from), onArc(s, to)
				sin, cos := math.Sincos(from)
				p1 := vg.Point{X: a.X - reach*vg.Length(sin), Y: a.Y + reach*vg.Length(cos)}
				sin, cos = math.Sincos(to)
				p2 := vg.Point{X: b.X + reach*vg.Length(sin), Y: b.Y - reach*vg.Length(cos)}
				put("c", p1, p2, b)
			}
		case vg.CloseComp:
			c.page.WriteString("h\n")
		}
	}
}

func (c *pdf) FillString(f font.Face, p vg.Point, txt string) {
	if txt == "" || f.Font.Size <= 0 {
		return
	}
	c.paint("rg")
	k := 0
	for k < len(c.fonts) && c.fonts[k].font != f.Face {
		k++
	}
	if k == len(c.fonts) {
		c.fonts = append(c.fonts, newSubset(f))
	}
	x, y := c.at(p)
	sin, cos := math.Sincos(c.angle())
	fmt.Fprintf(&c.page, "BT /F%d %s Tf %s %s %s %s %s %s Tm [%s] TJ ET\n", k, decimal(float64(f.Font.Size)),
		thousandth(cos), thousandth(sin), thousandth(-sin), thousandth(cos), decimal(x), decimal(y),
		c.fonts[k].show(txt))
}

// DrawImage places an image, which the file has once.
func (c *pdf) DrawImage(r vg.Rectangle, img image.Image) {
	m := img.(*Raster)
	k := slices.IndexFunc(c.images, func(o *Raster) bool { return o.same(m) })
	if k < 0 {
		k, c.images = len(c.images), append(c.images, m)
	}
	x, y := c.at(r.Min)
	fmt.Fprintf(&c.page, "q %s 0 0 %s %s %s cm /I%d Do Q\n", decimal(float64(r.Size().X)),
		decimal(float64(r.Size().Y)), decimal(x), decimal(y), k)
}

// bytes returns the file.
func (c *pdf) bytes() []byte {
	var d document
	catalog, pages, page := d.add("<</Type/Catalog/Pages 2 0 R>>"), d.add(""), d.add("")
	d.objects[pages-1] = fmt.Sprintf("<</Type/Pages/Count 1/Kids[%d 0 R]>>", page)
	var resources strings.Builder
	resources.WriteString("<</Font<<")
	for k, f := range c.fonts {
		fmt.Fprintf(&resources, "/F%d %d 0 R", k, f.write(&d))
	}
	resources.WriteString(">>/ExtGState<<")
	for k, a := range c.alpha {
		fmt.Fprintf(&resources, "/A%d<</CA %s/ca %s>>", k, a, a)
	}
	resources.WriteString(">>/XObject<<")
	for k, m := range c.images {
		fmt.Fprintf(&resources, "/I%d %d 0 R", k, m.object(&d))
	}
	resources.WriteString(">>>>")
	contents := d.stream("", c.page.Bytes())
	d.objects[page-1] = fmt.Sprintf("<</Type/Page/Parent %d 0 R/MediaBox[0 0 %s %s]/Contents %d 0 R"+
		"/Resources%s>>", pages, decimal(float64(c.w)), decimal(float64(c.h)), contents, resources.String())
	return d.bytes(catalog)
}

// A document is the objects of a PDF file; object n is objects[n-1].
type document struct{ objects []string }

// add adds an object and returns its number.
func (d *document) add(object string) int {
	d.objects = append(d.objects, object)
	return len(d.objects)
}

// shared returns the number of an object that others may have added before.
func (d *document) shared(object string) int {
	if i := slices.Index(d.objects, object); i >= 0 {
		return i + 1
	}
	return d.add(object)
}

// stream adds compressed data, with entries of its dictionary.
func (d *document) stream(entries string, data []byte) int {
	return d.raw(entries+"/Filter/FlateDecode", deflated(data))
}

// raw adds data as they are.
func (d *document) raw(entries string, data []byte) int {
	return d.add(fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", entries, len(data), data))
}

func deflated(data []byte) []byte {
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err != nil {
		panic(err) // the level exists
	}
	z.Write(data) // a buffer never fails
	z.Close()
	return b.Bytes()
}

func (d *document) bytes(catalog int) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n%\xe2\xe3\xcf\xd3\n") // bytes above 127: this is no text
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(d.objects)+1)
	for i, o := range d.objects {
		table += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "%strailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n", table, len(d.objects)+1,
		catalog, start)
	return b.Bytes()
}

// thousandth formats a number with at most three decimals.
func thousandth(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", x+0), "0"), ".")
}
