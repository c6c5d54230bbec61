package stages

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
)

// Deviation returns how much a payload of a port of type t differs from a processor's for the same item: 0
// for the same bytes, +Inf for another shape or for numbers undefined in other places. [Def.Tolerance]
// bounds it.
//
//   - For a map it is the sum of the differences, as a fraction of the sum of the processor's magnitudes:
//     the last bit decides on which side of its kink a rectifier is, or which of equal values is a pool's
//     largest, and so moves much relevance in few places. The mean magnitude counts as at least 1e-6: a map
//     that should be zero has less, by rounding.
//   - For other floating-point numbers it is the largest difference, as a fraction of the largest magnitude,
//     which counts as at least one: they are fractions and logits. A curve's responses are compared one by
//     one, as they have different units.
//   - For whole numbers, such as classes, it is the fraction of the numbers that differ.
//   - For a table it is the deviation of the worst column.
func Deviation(t Type, got, want []byte) float64 { return deviation(t, got, want, apart) }

// A Deviated says by how much a payload deviates in one of its quantities, and by how much it may.
type Deviated struct {
	// Quantity is a response of curves, as their facts name it, or else the port.
	Quantity string
	// By is a [Deviation] in float32. In another precision it is the same for maps; of other numbers it is
	// the mean difference in the place of the largest, since a curve that is steep moves by a point. Of
	// "correct", which is 0 or 1, that is the share of the points at which the prediction flips, and 0 for
	// a single one: it flips where rounding decides between two classes, whose outputs aren't known here.
	By        float64
	Tolerance float64
}

// Off reports whether it deviates by more than it may.
func (d Deviated) Off() bool { return !(d.By <= d.Tolerance) }

// Compare orders by how far deviations exhaust their tolerances.
func (d Deviated) Compare(other Deviated) int {
	return cmp.Or(cmp.Compare(d.exhausts(), other.exhausts()), cmp.Compare(d.By, other.By))
}

// exhausts returns the share of the tolerance that is used.
func (d Deviated) exhausts() float64 {
	if d.By == 0 {
		return 0
	}
	return d.By / d.Tolerance
}

// Rounded returns by how much a payload of a port deviates that was computed in another precision: of curves
// and responses each row, which the fact "responses" names. [Stage.Rounding] bounds it.
func Rounded(p Port, facts Facts, got, want []byte) []Deviated {
	names := strings.Split(facts["responses"], ",")
	if p.Type != Curves && p.Type != Responses || facts["responses"] == "" {
		names = nil
	}
	g, err := DecodeTensor(got)
	w, err2 := DecodeTensor(want)
	if len(names) == 0 || err != nil || err2 != nil || len(w.Shape) != 2 || w.Shape[0] != len(names) ||
		g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
		return []Deviated{{Quantity: p.Name, By: deviation(p.Type, got, want, meanApart)}}
	}
	var all []Deviated
	a, b, points := g.Float64s(), w.Float64s(), w.Shape[1]
	for row, name := range names {
		from, to := row*points, (row+1)*points
		d := Deviated{Quantity: name, By: meanApart(a[from:to], b[from:to])}
		if name == "correct" && d.By*float64(points) < 1.5 {
			d.By = 0
		}
		all = append(all, d)
	}
	return all
}

// deviation is Deviation by a function for numbers that aren't a map's.
func deviation(t Type, got, want []byte, apart func(got, want []float64) float64) float64 {
	switch {
	case bytes.Equal(got, want):
		return 0
	case t.Form == FormTensor:
		return tensorDeviation(t, got, want, apart)
	case t.Form == FormTable:
		return tableDeviation(got, want, apart)
	}
	return math.Inf(1)
}

func tensorDeviation(t Type, got, want []byte, apart func(got, want []float64) float64) float64 {
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
	a, b, rows := g.Float64s(), w.Float64s(), 1
	if t == Maps {
		return moved(a, b)
	}
	if t == Curves && len(w.Shape) > 0 {
		rows = max(1, w.Shape[0])
	}
	worst := 0.0
	for row := range rows {
		from, to := row*len(b)/rows, (row+1)*len(b)/rows
		worst = max(worst, apart(a[from:to], b[from:to]))
	}
	return worst
}

func tableDeviation(got, want []byte, apart func(got, want []float64) float64) float64 {
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
		worst = max(worst, apart(numbers(g), numbers(w)))
	}
	return worst
}

// moved returns the sum of the differences of numbers as a fraction of the sum of want's magnitudes.
func moved(got, want []float64) float64 {
	sum, magnitudes := 0.0, 0.0
	for i, w := range want {
		sum += difference(got[i], w)
		if !math.IsInf(w, 0) && !math.IsNaN(w) {
			magnitudes += math.Abs(w)
		}
	}
	if sum == 0 {
		return 0
	}
	return sum / max(magnitudes, 1e-6*float64(len(want)))
}

// apart returns the largest difference of numbers as a fraction of the largest magnitude of want, or of 1
// if that is larger.
func apart(got, want []float64) float64 {
	largest, magnitude := 0.0, 1.0
	for i, w := range want {
		largest = max(largest, difference(got[i], w))
		if !math.IsInf(w, 0) && !math.IsNaN(w) {
			magnitude = max(magnitude, math.Abs(w))
		}
	}
	return largest / magnitude
}

// meanApart returns the mean difference of numbers as a fraction of the same magnitude.
func meanApart(got, want []float64) float64 {
	sum, magnitude := 0.0, 1.0
	for i, w := range want {
		sum += difference(got[i], w)
		if !math.IsInf(w, 0) && !math.IsNaN(w) {
			magnitude = max(magnitude, math.Abs(w))
		}
	}
	return sum / magnitude / float64(max(1, len(want)))
}

// difference returns the difference of two numbers: 0 if neither is defined, +Inf if one isn't.
func difference(a, b float64) float64 {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return 0
	}
	if d := math.Abs(a - b); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// unequal returns the fraction of numbers that differ.
func unequal(got, want []int64) float64 {
	n := 0
	for i := range want {
		if got[i] != want[i] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(want)))
}
