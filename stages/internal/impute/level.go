package impute

// A level is a grid of places, with a border of one place around it, and a symmetric operator that joins each
// place with its eight neighbours.
type level struct {
	height, width, stride int
	active                []bool    // unknown; the border never is
	places                []int32   // the active places, row by row
	a                     []stencil // the operator; 0 where a place isn't active
	inverse               []float64 // 1 over the operator's diagonal
	x, b                  []pixel   // of the multigrid cycle: the correction, and the right-hand side
	parents               []parents // by place, where its value comes from on the next coarser level
}

// A stencil has the coefficients of a place itself and of the neighbours that come after it, row by row;
// those before it have the same in their own stencils.
type stencil [5]float64

const (
	centre = iota
	east
	southWest
	south
	southEast
)

// stencilOf returns the coefficient for a neighbour, -1 for those that come before.
func stencilOf(dy, dx int) int {
	switch {
	case dy == 0 && dx >= 0:
		return centre + dx
	case dy == 1:
		return south + dx
	}
	return -1
}

func newLevel(height, width int) *level {
	stride := width + 2
	n := stride * (height + 2)
	return &level{height: height, width: width, stride: stride, active: make([]bool, n),
		a: make([]stencil, n), inverse: make([]float64, n), x: make([]pixel, n), b: make([]pixel, n)}
}

// place returns the place of the i-th number row by row.
func (l *level) place(i int) int { return (i/l.width+1)*l.stride + i%l.width + 1 }

// list lists the active places.
func (l *level) list() {
	l.places = l.places[:0]
	for i := range l.height * l.width {
		if at := l.place(i); l.active[at] {
			l.places = append(l.places, int32(at))
		}
	}
}

// invert sets the inverse diagonal.
func (l *level) invert() {
	for _, i := range l.places {
		l.inverse[i] = 1 / l.a[i][centre]
	}
}

// before returns the sum over the neighbours before place i of coefficient times x.
func (l *level) before(x []pixel, i int) (u, v, w float64) {
	north := i - l.stride
	c, k := l.a[i-1][east], &x[i-1]
	u, v, w = c*k[0], c*k[1], c*k[2]
	c, k = l.a[north+1][southWest], &x[north+1]
	u, v, w = u+c*k[0], v+c*k[1], w+c*k[2]
	c, k = l.a[north][south], &x[north]
	u, v, w = u+c*k[0], v+c*k[1], w+c*k[2]
	c, k = l.a[north-1][southEast], &x[north-1]
	return u + c*k[0], v + c*k[1], w + c*k[2]
}

// after returns the same for the neighbours after it.
func (l *level) after(x []pixel, i int) (u, v, w float64) {
	a, below := &l.a[i], x[i+l.stride-1:i+l.stride+2]
	c, k := a[east], &x[i+1]
	u, v, w = c*k[0], c*k[1], c*k[2]
	c, k = a[southWest], &below[0]
	u, v, w = u+c*k[0], v+c*k[1], w+c*k[2]
	c, k = a[south], &below[1]
	u, v, w = u+c*k[0], v+c*k[1], w+c*k[2]
	c, k = a[southEast], &below[2]
	return u + c*k[0], v + c*k[1], w + c*k[2]
}

// apply sets y to the operator times x at the active places.
func (l *level) apply(x, y []pixel) {
	for _, at := range l.places {
		i := int(at)
		u, v, w := l.before(x, i)
		f, g, h := l.after(x, i)
		c, k := l.a[i][centre], &x[i]
		y[i] = pixel{c*k[0] + (u + f), c*k[1] + (v + g), c*k[2] + (w + h)}
	}
}
