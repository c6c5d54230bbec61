package behaviour

// decisive is the smallest difference of the two logits on an image.
const decisive = 0.25

// Draw returns the cells of image number index of a seed: the first of its draws on which the net decides
// for one of the classes, and that class.
func (n *Net) Draw(seed, index int) (cells []float64, class int) {
	r := n.rand("image", seed, index)
	for {
		cells = cells[:0]
		for _, p := range n.places {
			cells = append(cells, n.kind.roles[p.role].draw(r)...)
		}
		switch z := n.Logits(cells); {
		case z[0]-z[1] >= decisive:
			return cells, 0
		case z[1]-z[0] >= decisive:
			return cells, 1
		}
	}
}

// Pixels returns the image of these cells: three equal channels, values in [0,1].
func (n *Net) Pixels(cells []float64) []float32 {
	side := n.Side()
	out := make([]float32, 3*side*side)
	for i := range out {
		out[i] = float32((cells[n.cellOf(i%(side*side))] + 1) / 2)
	}
	return out
}

// Spread returns values of cells as a map in which pixels share that of their cell equally.
func (n *Net) Spread(values []float64) []float64 {
	out := make([]float64, n.Side()*n.Side())
	for i := range out {
		out[i] = values[n.cellOf(i)] / float64(n.Patch*n.Patch)
	}
	return out
}

// Segments returns the cell of every pixel.
func (n *Net) Segments() []uint32 {
	out := make([]uint32, n.Side()*n.Side())
	for i := range out {
		out[i] = uint32(n.cellOf(i))
	}
	return out
}

// cellOf returns the cell of pixel i of a channel.
func (n *Net) cellOf(i int) int {
	side := n.Side()
	return i/side/n.Patch*n.Grid + i%side/n.Patch
}
