// Package delaunay triangulates pixels and interpolates linearly between them: delaunay.go has the
// triangulation, fill.go the interpolation.
//
// Coordinates are integers, so that all predicates are exact and equal pixels give equal triangles on every
// processor.
package delaunay

// MaxSide is the largest side of an image whose pixels can be triangulated: the predicate of circles is then
// below 2⁶³. Images of WebP have no larger one either.
const MaxSide = 1<<14 - 1

// A Point is the place of a pixel.
type Point struct{ X, Y int32 }

// Triangulate returns the triangles of the Delaunay triangulation of distinct points, as indices,
// counter-clockwise where Y points up. The points are sorted by Y and then by X. Points on a line have no
// triangles.
//
// Where more than three points lie on a circle that contains no other, any triangulation of their polygon is
// Delaunay's: all its diagonals begin at its first point here. That is what a perturbation of the points by
// amounts that fall steeply with the index would give, so that the result depends on the points alone.
//
// The algorithm is the divide and conquer of Guibas and Stolfi, "Primitives for the Manipulation of General
// Subdivisions and the Computation of Voronoi Diagrams", ACM TOG 1985.
func Triangulate(points []Point) [][3]int32 {
	if len(points) < 3 {
		return nil
	}
	s := subdivision{points: points}
	s.divide(0, int32(len(points)))
	return s.triangles()
}

// An edge is directed. Edge e^1 is the same in the other direction.
type edge int32

func (e edge) sym() edge { return e ^ 1 }

// A subdivision is the edges of a planar graph, in rings around their origins.
type subdivision struct {
	points []Point
	origin []int32 // −1: deleted
	onext  []edge  // the next edge with that origin, counter-clockwise
	oprev  []edge  // and clockwise
}

func (s *subdivision) org(e edge) int32  { return s.origin[e] }
func (s *subdivision) dest(e edge) int32 { return s.origin[e^1] }

// lnext is the next edge around the face to the left of e, rprev that before it around the face to the right.
func (s *subdivision) lnext(e edge) edge { return s.oprev[e.sym()] }
func (s *subdivision) rprev(e edge) edge { return s.onext[e.sym()] }

// link adds an edge between two points, which is alone in its rings.
func (s *subdivision) link(a, b int32) edge {
	e := edge(len(s.origin))
	s.origin = append(s.origin, a, b)
	s.onext = append(s.onext, e, e.sym())
	s.oprev = append(s.oprev, e, e.sym())
	return e
}

// splice joins the rings of two edges, or parts them if they are one.
func (s *subdivision) splice(a, b edge) {
	afterA, afterB := s.onext[a], s.onext[b]
	s.onext[a], s.onext[b] = afterB, afterA
	s.oprev[afterA], s.oprev[afterB] = b, a
}

// connect adds an edge from the end of a to the origin of b, so that all three have the same face to the
// left.
func (s *subdivision) connect(a, b edge) edge {
	e := s.link(s.dest(a), s.org(b))
	s.splice(e, s.lnext(a))
	s.splice(e.sym(), b)
	return e
}

func (s *subdivision) remove(e edge) {
	s.splice(e, s.oprev[e])
	s.splice(e.sym(), s.oprev[e.sym()])
	s.origin[e], s.origin[e.sym()] = -1, -1
}

// divide triangulates the points from index lo to hi. It returns the counter-clockwise edge of the hull out
// of the first point, and the clockwise one out of the last.
func (s *subdivision) divide(lo, hi int32) (first, last edge) {
	switch hi - lo {
	case 2:
		e := s.link(lo, lo+1)
		return e, e.sym()
	case 3:
		a, b := s.link(lo, lo+1), s.link(lo+1, lo+2)
		s.splice(a.sym(), b)
		switch turn := s.turn(lo, lo+1, lo+2); {
		case turn > 0:
			s.connect(b, a)
		case turn < 0:
			c := s.connect(b, a)
			return c.sym(), c
		}
		return a, b.sym()
	}
	mid := lo + (hi-lo)/2
	first, li := s.divide(lo, mid)
	ri, last := s.divide(mid, hi)
	for { // to the lower common tangent
		if s.turn(s.org(ri), s.org(li), s.dest(li)) > 0 {
			li = s.lnext(li)
		} else if s.turn(s.org(li), s.org(ri), s.dest(ri)) < 0 {
			ri = s.rprev(ri)
		} else {
			break
		}
	}
	base := s.connect(ri.sym(), li)
	if s.org(li) == s.org(first) {
		first = base.sym()
	}
	if s.org(ri) == s.org(last) {
		last = base
	}
	for { // upwards
		left := s.candidate(base, s.onext[base.sym()], s.onext)
		right := s.candidate(base, s.oprev[base], s.oprev)
		l, r := s.above(left, base), s.above(right, base)
		switch {
		case !l && !r:
			return first, last
		case !l || r && s.inside(s.dest(left), s.org(left), s.org(right), s.dest(right)):
			base = s.connect(right, base.sym())
		default:
			base = s.connect(base.sym(), left.sym())
		}
	}
}

// above reports whether an edge from an end of base leads to its left side.
func (s *subdivision) above(e, base edge) bool {
	return s.turn(s.dest(e), s.dest(base), s.org(base)) > 0
}

// candidate returns the edge out of an end of base that makes a Delaunay triangle with it, and deletes those
// before it; next leads around that end.
func (s *subdivision) candidate(base, e edge, next []edge) edge {
	if !s.above(e, base) {
		return e
	}
	for s.inside(s.dest(base), s.org(base), s.dest(e), s.dest(next[e])) {
		after := next[e]
		s.remove(e)
		e = after
	}
	return e
}

// turn is positive if a, b, c turn counter-clockwise, negative if clockwise, and 0 on a line.
func (s *subdivision) turn(a, b, c int32) int64 {
	p, q, r := s.points[a], s.points[b], s.points[c]
	return int64(q.X-p.X)*int64(r.Y-p.Y) - int64(q.Y-p.Y)*int64(r.X-p.X)
}

// inside reports whether d lies inside the circle through a, b, c, which turn counter-clockwise. Of four
// points on a circle the one with the smallest index counts as moved towards the circle's centre.
func (s *subdivision) inside(a, b, c, d int32) bool {
	o := s.points[d]
	from := func(i int32) (x, y, square int64) {
		x, y = int64(s.points[i].X-o.X), int64(s.points[i].Y-o.Y)
		return x, y, x*x + y*y
	}
	ax, ay, a2 := from(a)
	bx, by, b2 := from(b)
	cx, cy, c2 := from(c)
	if det := a2*(bx*cy-by*cx) - b2*(ax*cy-ay*cx) + c2*(ax*by-ay*bx); det != 0 {
		return det > 0
	}
	switch min(a, b, c, d) {
	case a:
		return s.turn(b, c, d) < 0
	case b:
		return s.turn(a, c, d) > 0
	case c:
		return s.turn(a, b, d) < 0
	}
	return true
}

// triangles lists the faces of three edges.
func (s *subdivision) triangles() [][3]int32 {
	out := make([][3]int32, 0, 2*len(s.points))
	for e := range edge(len(s.origin)) {
		if s.origin[e] < 0 {
			continue
		}
		f := s.lnext(e)
		g := s.lnext(f)
		if e < f && e < g && s.lnext(g) == e && s.turn(s.org(e), s.org(f), s.org(g)) > 0 {
			out = append(out, [3]int32{s.org(e), s.org(f), s.org(g)})
		}
	}
	return out
}
