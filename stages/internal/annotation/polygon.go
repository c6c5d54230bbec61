package annotation

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// maxBoundary limits the points of a polygon's boundary, five a pixel, so that a few numbers can't take
// minutes.
const maxBoundary = 1 << 26

// polygonRuns returns the run lengths of a polygon in an image of w×h pixels, as COCO's mask API defines
// them. Its corners x0, y0, x1, y1, … are rounded to fifths of a pixel. Wherever the boundary between them,
// walked in such steps, crosses the middle of a column, the region begins or ends at the next pixel's centre.
func polygonRuns(corners []float64, w, h int) ([]uint32, error) {
	if len(corners) < 6 || len(corners)%2 != 0 {
		return nil, fmt.Errorf("a polygon of %d numbers: two for each of three or more corners are needed",
			len(corners))
	}
	const scale = 5
	n := len(corners) / 2
	at := make([][2]int, n+1)
	for i := range n {
		for k := range 2 {
			c := corners[2*i+k]
			if math.IsNaN(c) || math.Abs(c) > maxCoordinate {
				return nil, fmt.Errorf("a polygon's corner at %v", c)
			}
			at[i][k] = int(float64(scale*c) + 0.5)
		}
	}
	at[n] = at[0]
	points := 0
	for i := range n {
		points += max(abs(at[i+1][0]-at[i][0]), abs(at[i+1][1]-at[i][1])) + 1
	}
	if points > maxBoundary {
		return nil, errors.New("a polygon's boundary is too long")
	}
	var ends []uint32 // where the region begins or ends, column by column
	first, lastX, lastY := true, 0, 0
	visit := func(x, y int) {
		if !first && x != lastX {
			column := (float64(min(x, lastX))+0.5)/scale - 0.5 // of the left one of two neighbours
			if math.Floor(column) == column && column >= 0 && column <= float64(w-1) {
				row := (float64(min(y, lastY))+0.5)/scale - 0.5
				row = math.Ceil(min(max(row, 0), float64(h)))
				ends = append(ends, uint32(int(column)*h+int(row)))
			}
		}
		first, lastX, lastY = false, x, y
	}
	for i := range n {
		walk(at[i], at[i+1], visit)
	}
	slices.Sort(ends)
	ends = append(ends, uint32(w*h))
	// Runs between ends; where two coincide, the runs around them are one.
	runs := []uint32{ends[0]}
	for i := 1; i < len(ends); i++ {
		if d := ends[i] - ends[i-1]; d > 0 {
			runs = append(runs, d)
		} else if i++; i < len(ends) {
			runs[len(runs)-1] += ends[i] - ends[i-1]
		}
	}
	return runs, nil
}

// walk visits the points of an edge, one for every step along its longer direction. The edge's direction
// only changes their order.
func walk(from, to [2]int, visit func(x, y int)) {
	dx, dy := abs(to[0]-from[0]), abs(to[1]-from[1])
	if dx == 0 && dy == 0 {
		visit(from[0], from[1])
		return
	}
	flip := dx >= dy && from[0] > to[0] || dx < dy && from[1] > to[1]
	if flip {
		from, to = to, from
	}
	long, short, steps := 0, 1, dx
	if dx < dy {
		long, short, steps = 1, 0, dy
	}
	slope := float64(to[short]-from[short]) / float64(steps)
	for d := range steps + 1 {
		t := d
		if flip {
			t = steps - d
		}
		var p [2]int
		p[long] = from[long] + t
		p[short] = int(float64(from[short]) + float64(slope*float64(t)) + 0.5)
		visit(p[0], p[1])
	}
}

func abs(x int) int { return max(x, -x) }
