package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A finding is the evidence of the graph and the answers about an output. The first of these that fits
// decides: logits before the last activation, distances, logits of a linear layer, logits before a
// normalisation of any form, and probabilities without logits.
type finding struct {
	r     *reader
	v     *verdict
	rows  [][]float32 // answers
	g     guarantee
	head  head
	nodes []onnx.Node

	values []string // that may be the logits
	sum    float64  // of every row, if whole
	whole  bool     // all rows have the same sum
	logs   bool     // the exponentials of every row add up to 1
}

// find classifies an output by the graph and the answers.
func (r *reader) find(v *verdict, rows [][]float32) {
	f := finding{r: r, v: v, rows: rows, g: r.all.of[v.value]}
	if f.g.never == sorts {
		v.refuse(f.g)
		return
	}
	f.head = headOf(r.m, v.value)
	if f.activated() || f.constant() {
		return
	}
	f.measure()
	if f.distances() || f.linear() || f.normalised() {
		return
	}
	f.probabilities()
}

// activated finds logits in front of the activation at the end of the graph, if it gives the answers.
func (f *finding) activated() bool {
	logits := f.r.seen[f.head.logits].rows
	if f.head.logits == "" || !f.head.reproduces(logits, f.rows) {
		return false
	}
	if constantRows(logits) {
		f.v.err = errIgnored
		return true
	}
	f.v.look(f.r, match{value: f.head.logits, own: f.head.independent, log: f.g.log, scale: 1})
	return true
}

// constant finds answers that are the same for all images.
func (f *finding) constant() bool {
	if !constantRows(f.rows) {
		return false
	}
	f.v.err = errIgnored
	if f.g.by != "" {
		f.v.err = fmt.Errorf("%w, or %s leaves nothing of it", errIgnored, f.g.by)
	}
	return true
}

// measure computes the properties by which the next steps decide. The exponentials of logits near 0, as of an
// untrained net, add up to the same too, but not to 1.
func (f *finding) measure() {
	f.nodes = nodesOf(f.r.m)
	all := f.r.all
	f.values = slices.DeleteFunc(f.r.ordered(all.tail(f.v.value), f.v.value), func(from string) bool {
		between := all.between(from, f.v.value, f.nodes)
		return slices.ContainsFunc(between, all.bends) || all.joined(between, from)
	})
	f.sum, f.whole = rowSum(f.rows)
	sum, same := rowSum(exponentials(f.rows, 1))
	f.logs = same && math.Abs(sum-1) <= 1e-4
}

// distances finds numbers that are smallest for the nearest class.
func (f *finding) distances() bool {
	by := f.r.all.distance(f.v.value)
	if by == "" || !f.g.linear() {
		return false
	}
	f.g.never, f.g.label = "measures how far classes are, of which the nearest has the smallest number", by
	f.v.refuse(f.g)
	return true
}

// linear finds numbers that a linear layer leaves unbounded.
func (f *finding) linear() bool {
	if !f.g.linear() || f.whole || f.logs {
		return false
	}
	f.v.head.Kind = kindLogits
	f.v.head.Why = "a linear layer leaves them unbounded, and nothing behind it normalises"
	if m, ok := f.r.all.matchItself(f.values, f.r.seen, f.rows, true); ok && sameLargest(f.rows) {
		f.v.look(f.r, m)
	}
	return true
}

// normalised finds logits whose normalisation gives the answers, or which are the answers.
func (f *finding) normalised() bool {
	if f.g.never != "" && (f.g.label == "" || f.logs) {
		return false
	}
	hint, all := f.g, f.r.all
	if !hint.probability() {
		hint.unit, hint.log = 0, false
	}
	together := slices.DeleteFunc(slices.Clone(f.values), func(from string) bool {
		return !slices.ContainsFunc(all.between(from, f.v.value, f.nodes), mixes)
	})
	tolerance := f.tolerance()
	m, ok := matchLogits(f.values, together, f.r.seen, f.rows, hint, tolerance)
	if ok && f.complete(m) && (m.apart <= exactTolerance || !f.g.rounds || f.r.unrounded(m, f.values)) {
		f.v.look(f.r, all.unshifted(m, f.values, f.r.seen, f.rows, hint, tolerance))
		return true
	}
	m, ok = all.matchItself(f.values, f.r.seen, f.rows, false)
	if !ok || slices.ContainsFunc(all.between(m.value, f.v.value, f.nodes), all.decides) {
		return false
	}
	f.v.look(f.r, m)
	return true
}

// tolerance returns the largest difference between probabilities computed from logits and the answers.
func (f *finding) tolerance() float64 {
	switch {
	case f.g.rounds && f.g.probability() && !f.g.about:
		return quantisationTolerance
	case half(f.r.m):
		return halfTolerance
	}
	return exactTolerance
}

// complete reports whether a match uses all classes of a Softmax.
func (f *finding) complete(m match) bool {
	return m.columns == nil || m.own || len(m.columns) >= len(f.r.seen[m.value].rows[0])
}

// probabilities classifies the output itself as probabilities, or their logarithms, or refuses it.
func (f *finding) probabilities() {
	v, g := f.v, f.g
	switch {
	case g.probability() && within(f.rows, g):
		if g.about && f.whole {
			g.unit = f.sum
		}
		v.keep(g.unit, g.log, g.own || f.head.independent, g.by)
	case g.by != "" && g.never == "" && g.low >= 0 && g.high == 1 && !g.log:
		v.keep(1, false, true, g.by)
	case f.whole && (g.never == "" || g.label == g.by):
		v.keep(roundSum(f.sum), false, false, cause(g, "every row adds up to the same"))
	case f.logs:
		v.keep(1, true, false, cause(g, "the exponentials of every row add up to 1"))
	default:
		v.refuse(g)
	}
}

// unrounded reports whether a match that rounding hides is exact for the last value before it is rounded.
func (r *reader) unrounded(m match, values []string) bool {
	for _, v := range slices.Backward(values) {
		if g := r.all.of[v]; !g.rounds && g.probability() {
			_, ok := matchLogits([]string{m.value}, []string{m.value}, r.seen, r.seen[v].rows, g,
				exactTolerance)
			return ok
		}
	}
	return false
}

// cause names the node that normalises, or says how the normalisation was noticed.
func cause(g guarantee, noticed string) string {
	if g.by != "" && g.never == "" {
		return g.by
	}
	return noticed
}

// roundSum returns 1 for a sum that is 1 up to rounding.
func roundSum(sum float64) float64 {
	if math.Abs(sum-1) <= 1e-4 {
		return 1
	}
	return sum
}

// exponentials returns the exponentials of numbers divided by scale.
func exponentials(rows [][]float32, scale float64) [][]float32 {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		for _, v := range row {
			out[i] = append(out[i], float32(math.Exp(float64(v)/scale)))
		}
	}
	return out
}

// sameLargest reports whether the largest number of every row is the same.
func sameLargest(rows [][]float32) bool {
	for _, row := range rows {
		if slices.Max(row) != slices.Max(rows[0]) {
			return false
		}
	}
	return len(rows[0]) > 1
}

// within reports whether answers are what the graph guarantees.
func within(rows [][]float32, g guarantee) bool {
	for _, row := range rows {
		for _, v := range row {
			p := float64(v) / g.unit
			if g.log {
				p = math.Exp(p)
			}
			if !(p >= -probabilityTolerance && p <= 1+probabilityTolerance) {
				return false
			}
		}
	}
	return true
}
