package superpixel

import "math"

// SLIC are the parameters of simple linear iterative clustering.
type SLIC struct {
	Segments    int     // about as many
	Compactness float64 // weight of the distance in space against that of colours
	Iterations  int
	Sigma       float64 // of the filter before it, 0 for none
	Smallest    float64 // share of the mean size below which a segment joins a neighbour
	Largest     float64 // share of the mean size above which it is cut
}

// A centre is the mean position of a cluster, and its mean colour divided by the compactness. The position is
// NaN if it is empty.
type centre struct {
	y, x   float64
	colour []float64
}

// Labels returns the segment of each pixel, row by row, from 0. Achanta et al., "SLIC Superpixels Compared to
// State-of-the-Art Superpixel Methods", PAMI 2012.
func (p SLIC) Labels(m Image) []uint32 {
	m = m.Stretched().colours()
	rows, columns := combs(m.Height, m.Width, p.Segments)
	if p.Sigma > 0 {
		m = m.smoothed(p.Sigma, append([]axis{{1, len(m.Pix)}}, m.plane()...)...)
	}
	var centres []centre
	for y := rows.start; y < m.Height; y += rows.step {
		for x := columns.start; x < m.Width; x += columns.step {
			centres = append(centres, centre{float64(y), float64(x), make([]float64, m.Channels)})
		}
	}
	m.scale(1 / p.Compactness)
	c := newClusters(m, centres, float64(max(rows.step, columns.step)))
	for range p.Iterations {
		c.assign()
		c.move()
	}
	size := float64(m.Height*m.Width) / float64(len(centres))
	return connected(c.of, m.Height, m.Width, int(p.Smallest*size), int(p.Largest*size))
}

// Stretched returns m with values from 0 to 1, in all its channels together.
func (m Image) Stretched() Image {
	m = m.clone()
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range m.Pix {
		low, high = min(low, v), max(high, v)
	}
	for k := range m.Pix {
		m.Pix[k] -= low
		if high != low {
			m.Pix[k] /= high - low
		}
	}
	return m
}

// clusters assign pixels to centres.
type clusters struct {
	Image
	centres []centre
	weight  float64 // of the squared distance in space
	dy, dx  float64 // a centre reaches as many pixels
	of      []int32
	best    []float64
}

func newClusters(m Image, centres []centre, step float64) *clusters {
	rows, columns := combs(m.Height, m.Width, len(centres))
	n := m.Height * m.Width
	return &clusters{m, centres, 1 / (step * step), float64(2 * rows.step), float64(2 * columns.step),
		make([]int32, n), make([]float64, n)}
}

// A window is the pixels that a centre reaches: rows top ≤ y < bottom, columns left ≤ x < right; none of an
// empty cluster.
type window struct{ top, bottom, left, right int }

func (c *clusters) window(q *centre) window {
	if math.IsNaN(q.y) {
		return window{}
	}
	return window{int(max(q.y-c.dy, 0)), int(min(q.y+c.dy+1, float64(c.Height))),
		int(max(q.x-c.dx, 0)), int(min(q.x+c.dx+1, float64(c.Width)))}
}

// assign gives each pixel the nearest centre within reach, of equally near ones the first; a pixel out of
// reach keeps its own. The search starts at the pixel's own centre, so that few others are close enough in
// space for their colours to matter.
func (c *clusters) assign() {
	windows := make([]window, len(c.centres))
	for k := range windows {
		windows[k] = c.window(&c.centres[k])
	}
	for y, i := 0, 0; y < c.Height; y++ {
		for x := range c.Width {
			k := c.of[i]
			c.best[i] = math.Inf(1)
			if w := &windows[k]; y >= w.top && y < w.bottom && x >= w.left && x < w.right {
				q := &c.centres[k]
				dy, dx := q.y-float64(y), q.x-float64(x)
				c.best[i] = float64((float64(dy*dy)+float64(dx*dx))*c.weight) + c.colourDistance(i, q.colour)
			}
			i++
		}
	}
	var dx2 []float64
	for k, w := range windows {
		q := &c.centres[k]
		dx2 = dx2[:0]
		for x := w.left; x < w.right; x++ {
			dx := q.x - float64(x)
			dx2 = append(dx2, dx*dx)
		}
		for y := w.top; y < w.bottom; y++ {
			dy := q.y - float64(y)
			c.assignRow(int32(k), y*c.Width+w.left, dy*dy, dx2)
		}
	}
}

// assignRow compares centre k with those of the pixels from i on, given the squared distances down and
// across.
func (c *clusters) assignRow(k int32, i int, dy2 float64, dx2 []float64) {
	best, colour := c.best[i : i+len(dx2)][:len(dx2)], c.centres[k].colour
	if len(colour) != 3 {
		for j, d := range dx2 {
			if d = float64((dy2 + d) * c.weight); d <= best[j] {
				c.take(k, i+j, d+c.colourDistance(i+j, colour))
			}
		}
		return
	}
	pixels, of, weight := c.Pix[3*i:3*(i+len(dx2))], c.of[i:i+len(dx2)], c.weight
	q0, q1, q2 := colour[0], colour[1], colour[2]
	for j, d := range dx2 {
		nearest := best[j]
		if d = float64((dy2 + d) * weight); d > nearest {
			continue
		}
		p := pixels[3*j : 3*j+3 : 3*j+3]
		x, y, z := p[0]-q0, p[1]-q1, p[2]-q2
		if d += float64(x*x) + float64(y*y) + float64(z*z); d < nearest || d == nearest && k < of[j] {
			best[j], of[j] = d, k
		}
	}
}

// take gives pixel i centre k in distance d if no other is nearer, nor one before k as near.
func (c *clusters) take(k int32, i int, d float64) {
	if d < c.best[i] || d == c.best[i] && k < c.of[i] {
		c.best[i], c.of[i] = d, k
	}
}

// colourDistance returns the squared distance of a pixel's colour from another one.
func (c *clusters) colourDistance(i int, colour []float64) (sum float64) {
	pixel := c.Pix[i*len(colour):]
	for ch, v := range colour {
		d := pixel[ch] - v
		sum += float64(d * d)
	}
	return sum
}

// move moves the centres to the means of their pixels.
func (c *clusters) move() {
	count := make([]float64, len(c.centres))
	for k := range c.centres {
		q := &c.centres[k]
		q.y, q.x = 0, 0
		clear(q.colour)
	}
	pixel := c.Pix
	for y := range c.Height {
		for x, k := range c.of[y*c.Width : (y+1)*c.Width] {
			q := &c.centres[k]
			count[k]++
			q.y += float64(y)
			q.x += float64(x)
			for ch := range q.colour {
				q.colour[ch] += pixel[ch]
			}
			pixel = pixel[len(q.colour):]
		}
	}
	for k, n := range count {
		q := &c.centres[k]
		q.y /= n
		q.x /= n
		for ch := range q.colour {
			q.colour[ch] /= n
		}
	}
}
