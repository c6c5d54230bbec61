package impute

// Multigrid: every second place of a level, down and across, is a place of the next coarser one. A value
// between them is their mean (bilinear interpolation P), 0 where a place isn't active. The coarser operator
// is PᵀAP (Galerkin's), which has neighbours only, as A does. Briggs, Henson and McCormick, "A Multigrid
// Tutorial", 2000, chapters 3, 5 and 8.

// Parents are the places that a place's value is the mean of: 1, 2 or 4.
type parents struct {
	at [4]int32
	n  int32
}

// interpolateFrom sets the parents of the level's places.
func (l *level) interpolateFrom(coarse *level) {
	l.parents = make([]parents, len(l.a))
	along := func(i, size int) (p [2]int, n int) { // beyond the border is none
		if p = [2]int{i / 2, i/2 + 1}; i%2 == 1 && p[1] < size {
			return p, 2
		}
		return p, 1
	}
	for y := range l.height {
		rows, ny := along(y, coarse.height)
		for x := range l.width {
			columns, nx := along(x, coarse.width)
			p := &l.parents[(y+1)*l.stride+x+1]
			for _, row := range rows[:ny] {
				for _, column := range columns[:nx] {
					p.at[p.n] = int32((row+1)*coarse.stride + column + 1)
					p.n++
				}
			}
		}
	}
}

// restrictOperator sets the level's operator to PᵀAP of the finer one's, and its active places to those that
// P reads.
func (l *level) restrictOperator(fine *level) {
	clear(l.a)
	clear(l.active)
	add := func(p, q *parents, v float64) { // v·PᵢPⱼ, once for each pair
		v /= float64(p.n * q.n)
		for _, i := range p.at[:p.n] {
			for _, j := range q.at[:q.n] {
				from, to := int(i), int(j)
				if from > to {
					from, to = to, from
				}
				switch to - from {
				case 0:
					l.a[from][centre] += 2 * v
				case 1:
					l.a[from][east] += v
				default:
					l.a[from][to-from-l.stride+south] += v
				}
			}
		}
	}
	for _, at := range fine.places {
		i, p := int(at), &fine.parents[at]
		for _, k := range p.at[:p.n] {
			l.active[k] = true
		}
		a := &fine.a[i]
		add(p, p, a[centre]/2)
		for s, k := range [...]int{east: i + 1, southWest: i + fine.stride - 1, south: i + fine.stride,
			southEast: i + fine.stride + 1} {
			if a[s] != 0 && s != centre {
				add(p, &fine.parents[k], a[s])
			}
		}
	}
	l.list()
	l.invert()
}

// cycle sets x of each level to about the solution for its b, b of the first, from coarse to fine: a V-cycle
// with one sweep of Gauss and Seidel forwards before and one backwards after the coarser levels, so that it
// is a symmetric operator.
func cycle(levels []*level) {
	l := levels[0]
	for _, at := range l.places { // x is 0 before
		i := int(at)
		u, v, w := l.before(l.x, i)
		c, b := l.inverse[i], &l.b[i]
		l.x[i] = pixel{(b[0] - u) * c, (b[1] - v) * c, (b[2] - w) * c}
	}
	if len(levels) == 1 {
		return
	}
	coarse := levels[1]
	for _, at := range coarse.places {
		coarse.b[at] = pixel{}
	}
	for _, at := range l.places {
		// What the sweep leaves is due to the places that it visited later.
		u, v, w := l.after(l.x, int(at))
		p := &l.parents[at]
		share := -1 / float64(p.n)
		for _, k := range p.at[:p.n] {
			b := &coarse.b[k]
			b[0] += share * u
			b[1] += share * v
			b[2] += share * w
		}
	}
	cycle(levels[1:])
	for _, at := range l.places {
		p := &l.parents[at]
		share := 1 / float64(p.n)
		x := &l.x[at]
		for _, k := range p.at[:p.n] {
			y := &coarse.x[k]
			x[0] += share * y[0]
			x[1] += share * y[1]
			x[2] += share * y[2]
		}
	}
	for k := len(l.places) - 1; k >= 0; k-- {
		i := int(l.places[k])
		u, v, w := l.before(l.x, i)
		f, g, h := l.after(l.x, i)
		c, b := l.inverse[i], &l.b[i]
		l.x[i] = pixel{(b[0] - (u + f)) * c, (b[1] - (v + g)) * c, (b[2] - (w + h)) * c}
	}
}
