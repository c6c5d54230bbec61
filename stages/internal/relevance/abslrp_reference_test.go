package relevance

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A layer64 is a reference implementation of a layer in float64 for one image: h, and |h|, which algorithm 1
// evaluates at the magnitudes of h's arguments, or instead of it atSame, evaluated at the same arguments. The
// relevance of an undivided layer isn't divided by h.
type layer64 struct {
	h, abs, atSame func(x []float64) []float64
	undivided      bool
}

// slope returns Σⱼ sⱼ·∂fⱼ/∂xᵢ for every i, by differences at four points.
func slope(f func([]float64) []float64, x, s []float64) []float64 {
	const step = 1e-3
	out := make([]float64, len(x))
	at := slices.Clone(x)
	for i := range x {
		for k, weight := range [...]float64{1, -8, 0, 8, -1} {
			at[i] = x[i] + float64(k-2)*step
			for j, y := range f(at) {
				out[i] += s[j] * y * weight / (12 * step)
			}
		}
		at[i] = x[i]
	}
	return out
}

// algorithm1 is half the paper's algorithm 1.
func (l layer64) algorithm1(x, r []float64) []float64 {
	s := make([]float64, len(r))
	for j, h := range l.h(x) {
		s[j] = r[j]
		if !l.undivided {
			s[j] /= math.Abs(h) + 1e-9
		}
	}
	size := make([]float64, len(x))
	for i, v := range x {
		size[i] = math.Abs(v)
	}
	half := l.abs
	if l.atSame != nil {
		half, size = l.atSame, x
	}
	own, magnitudes := slope(l.h, x, s), slope(half, size, s)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = (x[i]*own[i] + size[i]*magnitudes[i]) / 2
	}
	return out
}

// sums returns the sum of v and that of its magnitudes.
func sums(v []float64) (sum, magnitudes float64) {
	for _, x := range v {
		sum += x
		magnitudes += math.Abs(x)
	}
	return sum, magnitudes
}

// pass64 propagates relevance through layers, given in forward order, by a variant. The inputs of the first
// are cut at the given lengths.
func pass64(variant AbsLRPVariant, layers []layer64, x, r []float64, cut []int) []float64 {
	// the input of each layer
	at := [][]float64{x}
	for _, l := range layers[:len(layers)-1] {
		at = append(at, l.h(at[len(at)-1]))
	}
	for k := len(layers) - 1; k >= 0; k-- {
		parts := cut
		if k > 0 {
			parts = []int{len(at[k])}
		}
		r = layers[k].step(variant, at[k], r, parts)
	}
	return r
}

func (l layer64) step(variant AbsLRPVariant, x, r []float64, cut []int) []float64 {
	switch variant {
	case AbsLRPPaper:
		return l.algorithm1(x, r)
	case AbsLRPOfficial:
		out := l.algorithm1(x, r)
		from := 0
		for _, n := range cut {
			_, size := sums(out[from : from+n])
			for i := from; i < from+n; i++ {
				out[i] /= size + 1e-9
			}
			from += n
		}
		return out
	}
	out := make([]float64, len(x))
	for _, keep := range []func(float64) float64{plusPart, minusPart} {
		half := make([]float64, len(r))
		for j, v := range r {
			half[j] = keep(v)
		}
		_, incoming := sums(half)
		part := l.algorithm1(x, half)
		all, _ := sums(part)
		from := 0
		for _, n := range cut {
			sum, size := sums(part[from : from+n])
			for i := from; i < from+n; i++ {
				out[i] += incoming * sum / (all + 1e-9) * part[i] / (size + 1e-9)
			}
			from += n
		}
	}
	return out
}

// linear64 is h = W·x + b.
func linear64(d denseLayer) layer64 {
	at := func(f func(float64) float64) func([]float64) []float64 {
		return func(x []float64) []float64 {
			out := make([]float64, len(d.w))
			for j, row := range d.w {
				out[j] = f(d.b[j])
				for i, w := range row {
					out[j] += f(w) * x[i]
				}
			}
			return out
		}
	}
	return layer64{h: at(same), abs: at(math.Abs)}
}

// each64 is an element-wise function.
func each64(f, abs func(float64) float64) layer64 {
	all := func(f func(float64) float64) func([]float64) []float64 {
		return func(x []float64) []float64 {
			out := make([]float64, len(x))
			for i, v := range x {
				out[i] = f(v)
			}
			return out
		}
	}
	return layer64{h: all(f), abs: all(abs)}
}

// weightOf returns weights of an example, as float64.
func weightOf(ex Example, i int) []float64 {
	return doubles(noise(rand.New(rand.NewPCG(uint64(i), 1)), size(ex.Inputs[i])))
}

// moments returns the mean and the standard deviation.
func moments(x []float64, epsilon float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(deviation + epsilon)
}
