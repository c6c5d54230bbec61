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

// Ranks is a critical-difference diagram (Demšar, "Statistical Comparisons of Classifiers over Multiple Data
// Sets", JLMR 2006, Figure 1): mean ranks on an axis, the best on the left, and bars below it that join what
// can't be told apart.
type Ranks struct {
	Title    string
	Names    []string
	Rank     []float64 // at least 1, none undefined
	Critical float64   // the critical difference; NaN for none
	Groups   [][]int   // indices into Names of those that can't be told apart
}

// Figure draws the diagram.
func (r *Ranks) Figure() Figure {
	const (
		axisWidth = 300
		row       = 15
		reach     = 12 // of an elbow beyond the axis
	)
	name := words(labelSize)
	order := make([]int, len(r.Names))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Rank[a], r.Rank[b]) })
	half := (len(order) + 1) / 2
	label := func(i int) string { return r.Names[i] + "  " + strconv.FormatFloat(r.Rank[i], 'f', 2, 64) }
	var left, right vg.Length
	for k, i := range order {
		if w := width(name, label(i)); k < half {
			left = max(left, w)
		} else {
			right = max(right, w)
		}
	}
	last := float64(max(len(order), 2))
	if !math.IsNaN(r.Critical) {
		last = max(last, math.Ceil(1+r.Critical))
	}
	total := 2*border + left + right + axisWidth + 2*(reach+6)
	heading := bold(titleSize + 1)
	heading.YAlign = text.YTop
	title := wrap(heading, r.Title, total-2*border)
	var top vg.Length = border
	if title != "" {
		size := heading.Rectangle(title).Size()
		top += size.Y + 10
		total = max(total, size.X+2*border)
	}
	bar := top
	if !math.IsNaN(r.Critical) {
		top += 24
	}
	axis := top + 18
	names := axis + 12 + 6*vg.Length(len(r.Groups))
	f := Figure{Width: total, Height: names + row*vg.Length(half) + border}
	f.draw = func(c draw.Canvas) {
		x0 := border + left + reach + 6
		x := func(rank float64) vg.Length { return x0 + axisWidth*vg.Length((rank-1)/(last-1)) }
		y := func(down vg.Length) vg.Length { return f.Height - down }
		thin := draw.LineStyle{Color: Soft, Width: 0.8}
		c.FillText(heading, vg.Point{X: border, Y: y(border)}, title)
		center := words(labelSize)
		center.XAlign, center.YAlign = text.XCenter, text.YBottom
		if !math.IsNaN(r.Critical) {
			line := draw.LineStyle{Color: Ink, Width: 1}
			at := y(bar + 16)
			a, b := x(1), x(1+r.Critical)
			c.StrokeLines(line, []vg.Point{{X: a, Y: at}, {X: b, Y: at}},
				[]vg.Point{{X: a, Y: at - 3}, {X: a, Y: at + 3}}, []vg.Point{{X: b, Y: at - 3},
					{X: b, Y: at + 3}})
			txt := "critical difference " + strconv.FormatFloat(r.Critical, 'f', 2, 64)
			center.XAlign = text.XLeft
			c.FillText(center, vg.Point{X: a, Y: at + 4}, txt)
			center.XAlign = text.XCenter
		}
		c.StrokeLine2(draw.LineStyle{Color: Ink, Width: 1}, x(1), y(axis), x(last), y(axis))
		step := 1.0
		for (last-1)/step > 12 {
			step++
		}
		for t := 1.0; t <= last; t += step {
			c.StrokeLine2(draw.LineStyle{Color: Ink, Width: 1}, x(t), y(axis), x(t), y(axis)+4)
			c.FillText(center, vg.Point{X: x(t), Y: y(axis) + 5}, strconv.Itoa(int(t)))
		}
		for k, i := range order {
			// The best is on the first line on the left, the worst on the first line on the right.
			line, end, to := k, x(1)-reach, name
			to.XAlign = text.XRight
			txt := vg.Point{X: end - 4}
			if k >= half {
				line, end, to.XAlign = len(order)-1-k, x(last)+reach, text.XLeft
				txt.X = end + 4
			}
			down := names + row*(vg.Length(line)+0.5)
			txt.Y = y(down)
			c.StrokeLines(thin, []vg.Point{{X: x(r.Rank[i]), Y: y(axis)}, {X: x(r.Rank[i]), Y: y(down)},
				{X: end, Y: y(down)}})
			c.FillText(to, txt, oneLine(label(i)))
		}
		for k, g := range r.Groups {
			a, b := math.Inf(1), math.Inf(-1)
			for _, i := range g {
				a, b = min(a, r.Rank[i]), max(b, r.Rank[i])
			}
			at := y(axis + 8 + 6*vg.Length(k))
			c.StrokeLine2(draw.LineStyle{Color: Lines()[0], Width: 3}, x(a)-3, at, x(b)+3, at)
		}
	}
	return f
}
