package attribute

import (
	"cmp"
	"math"
	"slices"
)

// guided is the path of guided integrated gradients for one image, in the precision T.
type guided[T float32 | float64] struct {
	steps               int
	fraction, distance  float64
	from, to, x         []T
	least, most, before []T // of the step: the limits of the values, and the values before it
	total               T   // the L1 distance of the ends
	sum                 []float64
	order               []int // values by derivative
}

func newGuided[T float32 | float64](p GuidedIGParams, from, to []float32) *guided[T] {
	g := &guided[T]{steps: p.Steps, fraction: p.Fraction, distance: p.MaxDistance}
	for i := range from {
		g.from, g.to = append(g.from, T(from[i])), append(g.to, T(to[i]))
	}
	n := len(from)
	g.x = slices.Clone(g.from)
	g.least, g.most, g.before = make([]T, n), make([]T, n), make([]T, n)
	g.sum, g.order = make([]float64, n), make([]int, n)
	g.total = distance(g.x, g.to)
	return g
}

func (g *guided[T]) position(dst []float32) {
	for i, v := range g.x {
		dst[i] = float32(v)
	}
}

func (g *guided[T]) attribution() []float64 { return g.sum }

// step moves values until the distance to the image is that of the remaining steps.
func (g *guided[T]) step(k int, gradient []float32) {
	if g.total == 0 {
		return
	}
	alpha := float64(k+1) / float64(g.steps)
	least, most := T(math.Max(alpha-g.distance, 0)), T(math.Min(alpha+g.distance, 1))
	for i, from := range g.from {
		g.least[i] = from + T((g.to[i]-from)*least)
		g.most[i] = from + T((g.to[i]-from)*most)
		g.order[i] = i
	}
	goal := g.total * T(1-alpha)
	size := func(i int) float32 { return float32(math.Abs(float64(gradient[i]))) }
	slices.SortFunc(g.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b))
	})
	movable := g.order
	for done := false; !done; {
		copy(g.before, g.x)
		for i, from := range g.from {
			if way := g.to[i] - from; way != 0 && (g.x[i]-from)/way < least {
				g.x[i] = g.least[i]
			}
		}
		left := distance(g.x, g.to)
		if done = near64(float64(goal), float64(left)); !done {
			movable = slices.DeleteFunc(movable, func(i int) bool { return g.x[i] == g.most[i] })
			done = g.move(left-goal, g.slowest(movable, size))
		}
		for i, v := range g.x {
			g.sum[i] += float64(T((v - g.before[i]) * T(gradient[i])))
		}
	}
}

// slowest returns the values with derivatives up to the quantile that moves at once. Values at their limit
// count as the largest.
func (g *guided[T]) slowest(movable []int, size func(i int) float32) []int {
	k := int(g.fraction * float64(len(g.x)-1))
	if k >= len(movable) {
		return movable
	}
	end := k + 1
	for end < len(movable) && size(movable[end]) <= size(movable[k]) {
		end++
	}
	return movable[:end]
}

// move moves the given values to their limits, or all of them by the same share of the distance to these if
// that shortens the path by as much as wanted. It reports whether the step is complete or no value can move.
func (g *guided[T]) move(wanted T, some []int) bool {
	var possible T
	for _, i := range some {
		possible += T(math.Abs(float64(g.x[i] - g.most[i])))
	}
	if possible == 0 || wanted <= 0 {
		return true
	}
	share := wanted / possible
	for _, i := range some {
		if share > 1 {
			g.x[i] = g.most[i]
		} else {
			g.x[i] += T((g.most[i] - g.x[i]) * share)
		}
	}
	return !(share > 1)
}

func distance[T float32 | float64](a, b []T) T {
	var sum T
	for i := range a {
		sum += T(math.Abs(float64(a[i] - b[i])))
	}
	return sum
}

// near64 reports whether two numbers are equal within the rounding of float64.
func near64(a, b float64) bool {
	return math.Abs(a-b) <= math.Max(1e-9*math.Max(math.Abs(a), math.Abs(b)), 1e-9)
}
