package attribute

import (
	"math"
	"math/rand/v2"
)

// riseMasks are random masks before they are enlarged: for every mask a coarse grid and the offset at which
// the enlarged grid is cropped.
type riseMasks struct {
	cells         int
	height, width int
	grids         []float32 // cells × cells a mask
	shifts        [][2]int  // rows, columns
}

func drawMasks(r *rand.Rand, n, cells int, p float64, height, width int) riseMasks {
	m := riseMasks{cells: cells, height: height, width: width}
	for range n {
		for range cells * cells {
			visible := float32(0)
			if r.Float64() < p {
				visible = 1
			}
			m.grids = append(m.grids, visible)
		}
		m.shifts = append(m.shifts, [2]int{r.IntN(cell(height, cells)), r.IntN(cell(width, cells))})
	}
	return m
}

// cell returns the size in pixels of a grid's cell along an axis.
func cell(size, cells int) int { return (size + cells - 1) / cells }

// render writes mask k [H,W]: the grid enlarged to one cell more than the image, and cropped at the mask's
// shift.
func (m riseMasks) render(k int, mask []float32) {
	rows := m.taps(m.height, m.shifts[k][0], (m.cells+1)*cell(m.height, m.cells))
	columns := m.taps(m.width, m.shifts[k][1], (m.cells+1)*cell(m.width, m.cells))
	m.mix(k, rows, columns, mask)
}

// mix interpolates grid k at the taps of rows and columns.
func (m riseMasks) mix(k int, rows, columns []tap, mask []float32) {
	grid := m.grids[k*m.cells*m.cells : (k+1)*m.cells*m.cells]
	for y, r := range rows {
		upper, lower := grid[r.a*m.cells:], grid[r.b*m.cells:]
		for x, c := range columns {
			top := lerp(upper[c.a], upper[c.b], c.weight)
			bottom := lerp(lower[c.a], lower[c.b], c.weight)
			mask[y*len(columns)+x] = float32(lerp(top, bottom, r.weight))
		}
	}
}

// lerp returns a·(1−weight) + b·weight. Explicit conversions round each step, also on processors that fuse
// multiply and add.
func lerp[T float32 | float64](a, b T, weight float64) float64 {
	return float64(float64(a)*(1-weight)) + float64(float64(b)*weight)
}

// A tap mixes grid cells a and b, with weight for b.
type tap struct {
	a, b   int
	weight float64
}

// taps returns the interpolation taps of size pixels along an axis, cropped at shift from so many enlarged
// ones: linear, with pixel centres at halves, mirrored at the centres of the outer cells.
func (m riseMasks) taps(size, shift, enlarged int) []tap {
	out := make([]tap, size)
	for i := range out {
		at := (float64(i+shift)+0.5)*float64(m.cells)/float64(enlarged) - 0.5
		a := int(math.Floor(at))
		out[i] = tap{m.mirror(a), m.mirror(a + 1), at - float64(a)}
	}
	return out
}

func (m riseMasks) mirror(i int) int {
	if m.cells == 1 {
		return 0
	}
	if i < 0 {
		return -i
	}
	if i >= m.cells {
		return 2*(m.cells-1) - i
	}
	return i
}
