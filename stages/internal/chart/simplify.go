package chart

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// unseen is an invisible distance, in points of 1/72 inch, to which SVG files round.
const unseen = 0.1

// simplified returns the points of a line without those that lie within a distance of the line through the
// remaining ones, after Douglas and Peucker 1973. The ends stay.
func simplified(line []vg.Point, within vg.Length) []vg.Point {
	if len(line) < 3 {
		return line
	}
	keep := make([]bool, len(line))
	keep[0], keep[len(line)-1] = true, true
	for open := [][2]int{{0, len(line) - 1}}; len(open) > 0; {
		from, to := open[len(open)-1][0], open[len(open)-1][1]
		open = open[:len(open)-1]
		far, most := 0, float64(within)
		for i := from + 1; i < to; i++ {
			if d := distance(line[i], line[from], line[to]); d > most {
				far, most = i, d
			}
		}
		if far > 0 {
			keep[far] = true
			open = append(open, [2]int{from, far}, [2]int{far, to})
		}
	}
	out := make([]vg.Point, 0, len(line))
	for i, p := range line {
		if keep[i] {
			out = append(out, p)
		}
	}
	return out
}

// distance returns how far p is from the segment between a and b.
func distance(p, a, b vg.Point) float64 {
	dx, dy := float64(b.X-a.X), float64(b.Y-a.Y)
	at := 0.0
	if square := float64(dx*dx) + float64(dy*dy); square > 0 {
		at = min(max((float64(float64(p.X-a.X)*dx)+float64(float64(p.Y-a.Y)*dy))/square, 0), 1)
	}
	return math.Hypot(float64(p.X-a.X)-float64(at*dx), float64(p.Y-a.Y)-float64(at*dy))
}
