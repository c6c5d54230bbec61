package chart

import (
	"cmp"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// pens is common to the canvases that write files: the state that Push keeps and Pop restores, with the
// transforms so far as one matrix.
type pens struct {
	state pen
	stack []pen
}

type pen struct {
	matrix [6]float64 // x' = m0 x + m2 y + m4, y' = m1 x + m3 y + m5
	colour color.Color
	width  vg.Length
	dash   []vg.Length
}

func (c *pens) SetLineWidth(w vg.Length)               { c.state.width = w }
func (c *pens) SetLineDash(d []vg.Length, _ vg.Length) { c.state.dash = d }
func (c *pens) Push()                                  { c.stack = append(c.stack, c.state) }
func (c *pens) Translate(p vg.Point)                   { c.transform(1, 0, 0, 1, float64(p.X), float64(p.Y)) }
func (c *pens) Scale(x, y float64)                     { c.transform(x, 0, 0, y, 0, 0) }

func (c *pens) SetColor(col color.Color) {
	c.state.colour = cmp.Or(col, color.Color(color.Black))
}

func (c *pens) Rotate(rad float64) {
	sin, cos := math.Sincos(rad)
	c.transform(cos, sin, -sin, cos, 0, 0)
}

func (c *pens) Pop() {
	c.state, c.stack = c.stack[len(c.stack)-1], c.stack[:len(c.stack)-1]
}

func (c *pens) transform(a, b, d, e, f, g float64) {
	m := c.state.matrix
	c.state.matrix = [6]float64{m[0]*a + m[2]*b, m[1]*a + m[3]*b, m[0]*d + m[2]*e, m[1]*d + m[3]*e,
		m[0]*f + m[2]*g + m[4], m[1]*f + m[3]*g + m[5]}
}

// at returns the position of a point in the file.
func (c *pens) at(p vg.Point) (x, y float64) {
	m := c.state.matrix
	return m[0]*float64(p.X) + m[2]*float64(p.Y) + m[4], m[1]*float64(p.X) + m[3]*float64(p.Y) + m[5]
}

// angle returns by how much text is turned, in radians.
func (c *pens) angle() float64 { return math.Atan2(c.state.matrix[1], c.state.matrix[0]) }

// strokes reports whether lines leave a trace.
func (c *pens) strokes() bool {
	_, _, _, a := c.state.colour.RGBA()
	return c.state.width > 0 && a != 0
}

// onArc returns the point of an arc at an angle.
func onArc(s vg.PathComp, angle float64) vg.Point {
	sin, cos := math.Sincos(angle)
	return vg.Point{X: s.Pos.X + s.Radius*vg.Length(cos), Y: s.Pos.Y + s.Radius*vg.Length(sin)}
}
