package metric

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// MSTC is the minimum spanning tree compactness of a map, of Mesgari et al., "Structural Compactness as a
// Complementary Criterion for Explanation Quality", arXiv:2603.29491.
type MSTC struct {
	Score      float64 // NaN for fewer than two points
	Points     int     // salient pixels
	Components int     // connected parts of the graph of neighbours
}

// MSTCOf measures how compact the salient pixels of a map are, those that reach a quantile of its values:
// 100·d · 1/√A · n/ℓ, where d is the image's diagonal, A the area of the convex hull of the n pixels'
// centres, and ℓ the length of the minimum spanning forest of their graph, in which a pixel is joined to its
// nearest ones. Where the centres are on one line, √A is d.
//
// Neighbours as near as the last of the nearest belong to them, so that the score of a mirrored map is the
// same.
func MSTCOf(values []float64, height, width int, quantile float64, neighbours int) (m MSTC) {
	m.Score = nan
	if len(values) == 0 {
		return m
	}
	cut := Quantile(slices.Sorted(slices.Values(values)), quantile)
	g := grid{height: height, width: width, salient: make([]bool, len(values))}
	for i, v := range values {
		if v >= cut {
			g.salient[i] = true
			g.points = append(g.points, i)
		}
	}
	if m.Points = len(g.points); m.Points < 2 {
		m.Components = m.Points
		return m
	}
	diagonal := math.Hypot(float64(height), float64(width))
	spread := diagonal
	if twice := g.hull(); twice > 0 {
		spread = math.Sqrt(float64(twice) / 2)
	}
	var length float64
	length, m.Components = g.forest(min(neighbours, m.Points-1))
	m.Score = diagonal / spread * float64(m.Points) / length * 100
	return m
}

// A grid is the salient pixels of an image.
type grid struct {
	height, width int
	salient       []bool // by pixel
	points        []int  // the salient pixels, row by row
}

// hull returns twice the area of the convex hull of the pixels' centres, by Andrew's monotone chain.
func (g *grid) hull() int {
	at := func(i int) (x, y int) { return i % g.width, i / g.width }
	turn := func(a, b, c int) int {
		ax, ay := at(a)
		bx, by := at(b)
		cx, cy := at(c)
		return (bx-ax)*(cy-ay) - (by-ay)*(cx-ax)
	}
	half := func(points []int) (chain []int) {
		for _, p := range points {
			for len(chain) >= 2 && turn(chain[len(chain)-2], chain[len(chain)-1], p) <= 0 {
				chain = chain[:len(chain)-1]
			}
			chain = append(chain, p)
		}
		return chain[:len(chain)-1]
	}
	back := slices.Clone(g.points)
	slices.Reverse(back)
	corners := append(half(g.points), half(back)...)
	twice := 0
	for k := 2; k < len(corners); k++ {
		twice += turn(corners[0], corners[k-1], corners[k])
	}
	return twice
}

// An edge joins two salient pixels, numbered as in points.
type edge struct{ a, b int }

// forest returns the length of the minimum spanning forest of the graph in which each pixel is joined to its
// k nearest ones, and its number of trees.
func (g *grid) forest(k int) (length float64, trees int) {
	root := make([]int, len(g.points))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	edges := g.edges(k)
	trees = len(g.points)
	for _, square := range slices.Sorted(maps.Keys(edges)) {
		joined := 0
		for _, e := range edges[square] {
			if a, b := find(e.a), find(e.b); a != b {
				root[max(a, b)] = min(a, b)
				joined++
			}
		}
		length += float64(float64(joined) * math.Sqrt(float64(square)))
		trees -= joined
	}
	return length, trees
}

// edges returns the edges of the graph by the squares of their lengths.
func (g *grid) edges(k int) map[int][]edge {
	number := make([]int, len(g.salient))
	for n, i := range g.points {
		number[i] = n
	}
	around := offsets{}
	edges := map[int][]edge{}
	for n, i := range g.points {
		y, x := i/g.width, i%g.width
		found, last := 0, 0
		for next := 0; ; next++ {
			o := around.at(next)
			if found >= k && o.square > last {
				break
			}
			v, u := y+o.y, x+o.x
			if v >= 0 && v < g.height && u >= 0 && u < g.width && g.salient[v*g.width+u] {
				found, last = found+1, o.square
				edges[o.square] = append(edges[o.square], edge{n, number[v*g.width+u]})
			}
		}
	}
	return edges
}

// An offset leads from a pixel to another one.
type offset struct{ square, y, x int }

// offsets lists offsets by their length, up to a radius that grows on demand.
type offsets struct {
	radius int
	sorted []offset
}

// at returns the offset number k.
func (o *offsets) at(k int) offset {
	for k >= len(o.sorted) {
		inner := o.radius * o.radius
		o.radius = max(8, 2*o.radius)
		ring := []offset{}
		for y := -o.radius; y <= o.radius; y++ {
			for x := -o.radius; x <= o.radius; x++ {
				if square := y*y + x*x; square > inner && square <= o.radius*o.radius {
					ring = append(ring, offset{square, y, x})
				}
			}
		}
		slices.SortFunc(ring, func(a, b offset) int {
			return cmp.Or(a.square-b.square, a.y-b.y, a.x-b.x)
		})
		o.sorted = append(o.sorted, ring...)
	}
	return o.sorted[k]
}
