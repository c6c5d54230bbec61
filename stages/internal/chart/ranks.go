package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ranks is a critical-difference diagram (Demšar, "Statistical Comparisons of Classifiers over Multiple
// Data Sets", JLMR 2006, Figure 1): mean ranks on an axis, the best on the left, and bars below it that
// join competitors which don't differ significantly.
type Ranks struct {
	Title    string
	Names    []string
	Rank     []float64 // at least 1, none undefined
	Critical float64   // the critical difference; NaN for none
	Groups   [][]int   // indices into Names of competitors that don't differ significantly
}

// The lengths of a diagram.
const (
	rankAxis  = 300 // the width of the axis
	rankRow   = 15  // the height of a name
	rankReach = 12  // of an elbow beyond the axis
)

// Figure draws the diagram.
func (r *Ranks) Figure() Figure {
	d := rankDiagram{Ranks: r, order: make([]int, len(r.Names))}
	for i := range d.order {
		d.order[i] = i
	}
	slices.SortStableFunc(d.order, func(a, b int) int { return cmp.Compare(r.Rank[a], r.Rank[b]) })
	left, right := d.sides()
	d.last = float64(max(len(d.order), 2))
	if !math.IsNaN(r.Critical) {
		d.last = max(d.last, math.Ceil(1+r.Critical))
	}
	total := 2*border + left + right + rankAxis + 2*(rankReach+6)
	heading := bold(titleSize + 1)
	heading.YAlign = text.YTop
	title := wrap(heading, r.Title, total-2*border)
	var top vg.Length = border
	if title != "" {
		size := heading.Rectangle(title).Size()
		top += size.Y + 10
		total = max(total, size.X+2*border)
	}
	d.bar = top
	if !math.IsNaN(r.Critical) {
		top += 24
	}
	d.axis = top + 18
	d.names = d.axis + 12 + 6*vg.Length(len(r.Groups))
	d.left = border + left + rankReach + 6
	d.height = d.names + rankRow*vg.Length(d.half()) + border
	return Figure{Width: total, Height: d.height, draw: func(c draw.Canvas) {
		c.FillText(heading, vg.Point{X: border, Y: d.y(border)}, title)
		if !math.IsNaN(r.Critical) {
			d.drawCritical(c)
		}
		d.drawAxis(c)
		for k, i := range d.order {
			d.drawName(c, k, i)
		}
		for k, group := range r.Groups {
			d.drawGroup(c, k, group)
		}
	}}
}

// A rankDiagram is where the parts of a diagram are. What isn't a width is measured down from the top.
type rankDiagram struct {
	*Ranks
	order            []int     // indices into Names, the best first: half of them are on the left
	left             vg.Length // of the axis, from the border
	last             float64   // the last rank on the axis
	bar, axis, names vg.Length // of the critical difference, the axis and the first name
	height           vg.Length
}

func (d *rankDiagram) half() int { return (len(d.order) + 1) / 2 }

func (d *rankDiagram) x(rank float64) vg.Length {
	return d.left + rankAxis*vg.Length((rank-1)/(d.last-1))
}

func (d *rankDiagram) y(down vg.Length) vg.Length { return d.height - down }

func (d *rankDiagram) label(i int) string {
	return d.Names[i] + "  " + strconv.FormatFloat(d.Rank[i], 'f', 2, 64)
}

// sides returns the widths of the longest names on the left and on the right.
func (d *rankDiagram) sides() (left, right vg.Length) {
	style := words(labelSize)
	for k, i := range d.order {
		if w := width(style, d.label(i)); k < d.half() {
			left = max(left, w)
		} else {
			right = max(right, w)
		}
	}
	return left, right
}

// drawCritical draws the critical difference as a bar from the first rank on.
func (d *rankDiagram) drawCritical(c draw.Canvas) {
	at := d.y(d.bar + 16)
	a, b := d.x(1), d.x(1+d.Critical)
	c.StrokeLines(draw.LineStyle{Color: Ink, Width: 1}, []vg.Point{{X: a, Y: at}, {X: b, Y: at}},
		[]vg.Point{{X: a, Y: at - 3}, {X: a, Y: at + 3}}, []vg.Point{{X: b, Y: at - 3}, {X: b, Y: at + 3}})
	style := words(labelSize)
	style.XAlign, style.YAlign = text.XLeft, text.YBottom
	c.FillText(style, vg.Point{X: a, Y: at + 4},
		"critical difference "+strconv.FormatFloat(d.Critical, 'f', 2, 64))
}

// drawAxis draws the axis with at most a dozen ranks.
func (d *rankDiagram) drawAxis(c draw.Canvas) {
	style := words(labelSize)
	style.XAlign, style.YAlign = text.XCenter, text.YBottom
	line := draw.LineStyle{Color: Ink, Width: 1}
	c.StrokeLine2(line, d.x(1), d.y(d.axis), d.x(d.last), d.y(d.axis))
	step := 1.0
	for (d.last-1)/step > 12 {
		step++
	}
	for t := 1.0; t <= d.last; t += step {
		c.StrokeLine2(line, d.x(t), d.y(d.axis), d.x(t), d.y(d.axis)+4)
		c.FillText(style, vg.Point{X: d.x(t), Y: d.y(d.axis) + 5}, strconv.Itoa(int(t)))
	}
}

// drawName draws name i, the k-th in order. The best is on the first line on the left, the worst on the first
// line on the right.
func (d *rankDiagram) drawName(c draw.Canvas, k, i int) {
	line, end, style := k, d.x(1)-rankReach, words(labelSize)
	style.XAlign = text.XRight
	at := vg.Point{X: end - 4}
	if k >= d.half() {
		line, end, style.XAlign = len(d.order)-1-k, d.x(d.last)+rankReach, text.XLeft
		at.X = end + 4
	}
	at.Y = d.y(d.names + rankRow*(vg.Length(line)+0.5))
	from := d.x(d.Rank[i])
	c.StrokeLines(draw.LineStyle{Color: Soft, Width: 0.8},
		[]vg.Point{{X: from, Y: d.y(d.axis)}, {X: from, Y: at.Y}, {X: end, Y: at.Y}})
	c.FillText(style, at, oneLine(d.label(i)))
}

// drawGroup draws the bar of group k, from its best rank to its worst.
func (d *rankDiagram) drawGroup(c draw.Canvas, k int, group []int) {
	best, worst := math.Inf(1), math.Inf(-1)
	for _, i := range group {
		best, worst = min(best, d.Rank[i]), max(worst, d.Rank[i])
	}
	at := d.y(d.axis + 8 + 6*vg.Length(k))
	c.StrokeLine2(draw.LineStyle{Color: Lines()[0], Width: 3}, d.x(best)-3, at, d.x(worst)+3, at)
}
