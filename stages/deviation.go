package stages

import (
	"bytes"
	"math"
	"slices"
)

// Deviation returns how far a payload of a port of type t is off what a processor made of the same item: 0
// for the same bytes, +Inf for another shape or for numbers undefined in other places. [Def.Tolerance] bounds
// it.
//
//   - Of floating-point numbers it is the largest difference, as a share of the processor's largest
//     magnitude. A curve's responses are compared one by one, as they have different units.
//   - Of whole numbers, such as classes, it is the share of those that differ.
//   - Of a table it is that of the worst column.
//
// Magnitudes count as at least one for scores and curves, whose numbers are shares, ranks and logits, and as
// at least 1e-5 for maps: less is what rounding leaves of a map that is zero.
func Deviation(t Type, got, want []byte) float64 {
	switch {
	case bytes.Equal(got, want):
		return 0
	case t.Form == FormTensor:
		return tensorDeviation(t, got, want)
	case t.Form == FormTable:
		return tableDeviation(got, want)
	}
	return math.Inf(1)
}

func tensorDeviation(t Type, got, want []byte) float64 {
	g, err := DecodeTensor(got)
	if err != nil {
		return math.Inf(1)
	}
	w, err := DecodeTensor(want)
	if err != nil || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
		return math.Inf(1)
	}
	if w.DType != F32 && w.DType != F64 {
		return unequal(g.Int64s(), w.Int64s())
	}
	a, b, rows, least := g.Float64s(), w.Float64s(), 1, 1e-5
	if t == Curves || t == Scores {
		least = 1
	}
	if t == Curves && len(w.Shape) > 0 {
		rows = max(1, w.Shape[0])
	}
	worst := 0.0
	for row := range rows {
		from, to := row*len(b)/rows, (row+1)*len(b)/rows
		worst = max(worst, apart(a[from:to], b[from:to], least))
	}
	return worst
}

func tableDeviation(got, want []byte) float64 {
	g, err := DecodeTable(got)
	if err != nil {
		return math.Inf(1)
	}
	w, err := DecodeTable(want)
	if err != nil || !slices.EqualFunc(g.Rows, w.Rows,
		func(a, b Row) bool { return slices.Equal(a.Keys, b.Keys) && len(a.Numbers) == len(b.Numbers) }) {
		return math.Inf(1)
	}
	worst := 0.0
	for column := range w.Numbers {
		numbers := func(t Table) (all []float64) {
			for _, row := range t.Rows {
				all = append(all, float64(row.Numbers[column]))
			}
			return all
		}
		worst = max(worst, apart(numbers(g), numbers(w), 1))
	}
	return worst
}

// apart returns the largest difference of numbers as a share of the largest magnitude of want, or of least.
func apart(got, want []float64, least float64) float64 {
	difference, magnitude := 0.0, least
	for i, w := range want {
		g := got[i]
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		d := math.Abs(g - w)
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return math.Inf(1)
		}
		difference = max(difference, d)
	}
	for _, w := range want {
		if !math.IsInf(w, 0) && !math.IsNaN(w) {
			magnitude = max(magnitude, math.Abs(w))
		}
	}
	return difference / magnitude
}

// unequal returns the share of numbers that differ.
func unequal(got, want []int64) float64 {
	n := 0
	for i := range want {
		if got[i] != want[i] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(want)))
}
