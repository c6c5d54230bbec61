package delaunay

// A Weight is the part of a known pixel in the value of another: Parts of Total.
type Weight struct{ Pixel, Parts int }

// Fill calls set for every pixel of an image that isn't known and lies in the hull of those known, with the
// three known ones around it and their barycentric weights, whose parts sum to total. Pixels are numbered row
// by row. A pixel on the border of two triangles has the weights of one of them, which give the same value.
func Fill(known []bool, height, width int, set func(pixel int, from [3]Weight, total int)) {
	var points []Point
	for i, k := range known {
		if k {
			points = append(points, Point{X: int32(i % width), Y: int32(i / width)})
		}
	}
	for _, t := range Triangulate(points) {
		var corner [3]Point
		var from [3]Weight
		for k, i := range t {
			corner[k] = points[i]
			from[k].Pixel = int(points[i].Y)*width + int(points[i].X)
		}
		raster(corner, func(x, y int, parts [3]int, total int) {
			if i := y*width + x; !known[i] {
				for k := range from {
					from[k].Parts = parts[k]
				}
				set(i, from, total)
			}
		})
	}
}

// raster calls at for every place of the grid in a counter-clockwise triangle and on its border, with the
// areas of the triangles that it makes with the sides, each opposite to a corner, and their sum.
func raster(c [3]Point, at func(x, y int, parts [3]int, total int)) {
	var dx, dy [3]int // of the side opposite to a corner
	var start [3]Point
	for k := range c {
		a, b := c[(k+1)%3], c[(k+2)%3]
		start[k], dx[k], dy[k] = a, int(b.X-a.X), int(b.Y-a.Y)
	}
	total := dx[2]*int(c[2].Y-c[0].Y) - dy[2]*int(c[2].X-c[0].X)
	if total == 1 {
		return // corners alone, by Pick's theorem
	}
	for y := int(min(c[0].Y, c[1].Y, c[2].Y)); y <= int(max(c[0].Y, c[1].Y, c[2].Y)); y++ {
		left, right := int(min(c[0].X, c[1].X, c[2].X)), int(max(c[0].X, c[1].X, c[2].X))
		var parts [3]int // at x = 0
		for k := range c {
			// The area falls by dy with each step to the right.
			parts[k] = dx[k]*(y-int(start[k].Y)) + dy[k]*int(start[k].X)
			switch {
			case dy[k] > 0:
				right = min(right, floor(parts[k], dy[k]))
			case dy[k] < 0:
				left = max(left, -floor(parts[k], -dy[k]))
			}
		}
		for x := left; x <= right; x++ {
			at(x, y, [3]int{parts[0] - x*dy[0], parts[1] - x*dy[1], parts[2] - x*dy[2]}, total)
		}
	}
}

// floor returns the largest integer not above a/b, for b > 0.
func floor(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
