package superpixel

import "math"

// Felzenszwalb are the parameters of the segmentation along the edges of a graph of pixels.
type Felzenszwalb struct {
	Scale    float64 // the larger, the larger segments
	Sigma    float64 // of the filter before it, 0 for none
	Smallest int     // pixels of a segment, at least
}

// Labels returns the segment of each pixel, row by row, from 0. Edges of equal cost keep their order.
// Felzenszwalb and Huttenlocher, "Efficient Graph-Based Image Segmentation", IJCV 2004.
func (p Felzenszwalb) Labels(m Image) []uint32 {
	m = m.smoothed(p.Sigma, m.plane()...)
	edges := sorted(m.edges())
	f := newForest(m.Height * m.Width)
	inner := make([]float64, len(f.parent)) // the largest cost within the segment of a root
	scale := p.Scale / 255
	for _, e := range edges {
		a, b := f.root(e.a), f.root(e.b)
		if a == b {
			continue
		}
		limitA := float32(inner[a] + scale/float64(f.size[a]))
		limitB := float32(inner[b] + scale/float64(f.size[b]))
		if e.cost < float64(min(limitA, limitB)) {
			inner[f.join(a, b)] = e.cost
		}
	}
	for _, e := range edges {
		a, b := f.root(e.a), f.root(e.b)
		if a != b && (int(f.size[a]) < p.Smallest || int(f.size[b]) < p.Smallest) {
			f.join(a, b)
		}
	}
	return f.labels()
}

// An edge connects two neighbouring pixels. Its cost is the distance of their colours.
type edge struct {
	cost float64
	a, b int32
}

// edges returns all edges: to the right, down, down to the right and up to the right.
func (m Image) edges() []edge {
	edges := make([]edge, 0, 4*m.Height*m.Width)
	for _, d := range [4][2]int{{0, 1}, {1, 0}, {1, 1}, {-1, 1}} {
		for y := max(0, -d[0]); y < min(m.Height, m.Height-d[0]); y++ {
			for x := range m.Width - d[1] {
				a, b := y*m.Width+x, (y+d[0])*m.Width+x+d[1]
				edges = append(edges, edge{m.distance(a, b), int32(b), int32(a)})
			}
		}
	}
	return edges
}

// sorted returns edges by their costs; those of equal cost keep their order. It sorts by 16 bits of the costs
// at a time, which are not negative.
func sorted(edges []edge) []edge {
	other := make([]edge, len(edges))
	for shift := 0; shift < 64; shift += 16 {
		var start [1 << 16]int32
		digit := func(e edge) uint16 { return uint16(math.Float64bits(e.cost) >> shift) }
		for _, e := range edges {
			start[digit(e)]++
		}
		sum := int32(0)
		for k, n := range start {
			start[k], sum = sum, sum+n
		}
		for _, e := range edges {
			d := digit(e)
			other[start[d]] = e
			start[d]++
		}
		edges, other = other, edges
	}
	return edges
}

// distance returns the Euclidean distance of the colours of two pixels.
func (m Image) distance(a, b int) float64 {
	sum := 0.
	for ch := range m.Channels {
		d := m.Pix[b*m.Channels+ch] - m.Pix[a*m.Channels+ch]
		sum += float64(d * d)
	}
	return math.Sqrt(sum)
}

// A forest is disjoint sets, whose root is the member with the smallest number.
type forest struct {
	parent []int32
	size   []int32 // of the set of a root
}

func newForest(n int) forest {
	f := forest{make([]int32, n), make([]int32, n)}
	for i := range f.parent {
		f.parent[i], f.size[i] = int32(i), 1
	}
	return f
}

func (f forest) root(i int32) int32 {
	for f.parent[i] != i {
		f.parent[i] = f.parent[f.parent[i]]
		i = f.parent[i]
	}
	return i
}

// join unites the sets of two roots and returns the root of both.
func (f forest) join(a, b int32) int32 {
	a, b = min(a, b), max(a, b)
	f.parent[b] = a
	f.size[a] += f.size[b]
	return a
}

// labels numbers the sets in the order of their roots.
func (f forest) labels() []uint32 {
	out, next := make([]uint32, len(f.parent)), uint32(0)
	for i := range out {
		if r := f.root(int32(i)); int(r) == i { // the smallest of its set
			out[i] = next
			next++
		} else {
			out[i] = out[r]
		}
	}
	return out
}
