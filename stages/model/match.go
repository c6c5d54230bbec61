package model

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A match is a value before a normalisation that gives a model's answers: scale times their Softmax, or
// Sigmoid, or the logarithm of that.
type match struct {
	value   string
	own     bool // Sigmoid
	itself  bool // neither: the answers are the value
	columns []int
	scale   float64
	log     bool
	apart   float64 // the largest difference of probabilities
}

// Tolerances of probabilities computed from logits: for float32, for half precision, and for models that
// round.
const (
	exactTolerance = 2e-5
	halfTolerance  = 2e-3
)

// Probabilities between these bounds distinguish logits of different scales.
const clearLow, clearHigh = 0.005, 0.995

// matchLogits returns the last value whose Softmax or Sigmoid gives the answers in rows, false if there is
// none: an earlier value may do so on only some images. A Softmax is only searched before operators that
// take all classes together.
func matchLogits(values, together []string, seen map[string]view, rows [][]float32, g guarantee,
	tolerance float64) (best match, ok bool) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return best, false
	}
	for _, value := range slices.Backward(values) {
		v := seen[value].rows
		if len(v) != len(rows) || len(v) == 0 || len(v[0]) == 0 ||
			len(v[0])*len(rows[0]) > mostNumbers || len(v[0]) < len(rows[0]) {
			continue
		}
		for _, log := range []bool{false, true} {
			if log != g.log && g.unit != 0 {
				continue
			}
			for _, own := range []bool{false, true} {
				if !own && !slices.Contains(together, value) {
					continue
				}
				if m, found := matches(value, v, rows, g, own, log, tolerance); found &&
					(!ok || m.apart < best.apart/4 && best.apart > exactTolerance) {
					best, ok = m, true
				}
			}
		}
	}
	return best, ok
}

// unshifted returns the match before views of a matched value, and before the subtraction of the same
// number from all classes, such as the largest one in a stable Softmax.
func (all *guarantees) unshifted(m match, values []string, seen map[string]view, rows [][]float32,
	g guarantee,
	tolerance float64) match {
	for {
		n, ok := all.makers[m.value]
		shift := ok && n.OpType == "Sub" && !m.own &&
			onnx.Size(all.shapes[n.In(1)])*len(seen[n.In(0)].rows[0]) == onnx.Size(all.shapes[n.In(0)])
		if !ok || !isView(n) && !shift || !slices.Contains(values, n.In(0)) {
			return m
		}
		before, ok := matchLogits([]string{n.In(0)}, values, seen, rows, g, tolerance)
		if !ok || before.own != m.own {
			return m
		}
		m = before
	}
}

// matches compares answers with the Softmax or Sigmoid of a value.
func matches(value string, v, rows [][]float32, g guarantee, own, log bool, tolerance float64) (match, bool) {
	classes := len(rows[0])
	m := match{value: value, own: own, log: log, scale: 1}
	if len(v[0]) < 2 && !own {
		return m, false
	}
	p := make([][]float64, len(v))
	for i, row := range v {
		p[i] = softmaxOrSigmoid(row, own)
	}
	answers, ok := m.probabilities(rows, p, g)
	if !ok {
		return m, false
	}
	identity := make([]int, classes)
	for c := range identity {
		identity[c] = c
	}
	if len(p[0]) == classes {
		if m.apart = apart(answers, p, identity); m.apart <= tolerance {
			return m, told(p, identity)
		}
	}
	if len(p[0]) < 2 {
		return m, false
	}
	var found bool
	if m.columns, found = columnsOf(answers, p, min(tolerance, halfTolerance)); !found {
		return m, false
	}
	m.apart = apart(answers, p, m.columns)
	return m, m.apart <= tolerance && told(p, m.columns)
}

// probabilities returns the probabilities that answers stand for, by the scale that the graph guarantees or
// else by the one with which they are closest to p, false if that isn't positive.
func (m *match) probabilities(rows [][]float32, p [][]float64, g guarantee) ([][]float64, bool) {
	if m.log && g.unit != 0 {
		m.scale = g.unit
	}
	answers := make([][]float64, len(rows))
	for i, row := range rows {
		answers[i] = make([]float64, len(row))
		for c, a := range row {
			answers[i][c] = float64(a)
			if m.log {
				answers[i][c] = math.Exp(float64(a) / m.scale)
			}
		}
	}
	if m.log {
		return answers, true
	}
	m.scale = g.unit
	if len(p[0]) == len(answers[0]) && (g.about || m.scale == 0) {
		m.scale = leastSquares(answers, p)
	}
	if !(m.scale > 0) {
		return nil, false
	}
	for _, row := range answers {
		for c := range row {
			row[c] /= m.scale
		}
	}
	return answers, true
}

// softmaxOrSigmoid returns probabilities of logits in double precision.
func softmaxOrSigmoid(row []float32, own bool) []float64 {
	out := make([]float64, len(row))
	largest, sum := math.Inf(-1), 0.0
	for _, v := range row {
		largest = math.Max(largest, float64(v))
	}
	for i, v := range row {
		if own {
			out[i] = 1 / (1 + math.Exp(-float64(v)))
			continue
		}
		out[i] = math.Exp(float64(v) - largest)
		sum += out[i]
	}
	for i := range out {
		if !own {
			out[i] /= sum
		}
	}
	return out
}

func leastSquares(a, p [][]float64) float64 {
	ap, pp := 0.0, 0.0
	for i, row := range p {
		for c, v := range row {
			ap += a[i][c] * v
			pp += v * v
		}
	}
	return ap / pp
}

// apart returns the largest difference between answers and columns of probabilities, NaN if one is NaN.
func apart(answers, p [][]float64, columns []int) float64 {
	largest := 0.0
	for i, row := range answers {
		for c, a := range row {
			d := math.Abs(a - p[i][columns[c]])
			if d != d {
				return d
			}
			largest = math.Max(largest, d)
		}
	}
	return largest
}

// told reports whether some probabilities are far enough from 0 and 1 to distinguish logits of different
// scales.
func told(p [][]float64, columns []int) bool {
	for _, row := range p {
		for _, c := range columns {
			if row[c] > clearLow && row[c] < clearHigh {
				return true
			}
		}
	}
	return false
}

// columnsOf returns, for every column of answers, the equal column of p; false unless there is exactly one
// for each.
func columnsOf(answers, p [][]float64, tolerance float64) ([]int, bool) {
	out := make([]int, len(answers[0]))
	taken := map[int]bool{}
	for c := range out {
		fit := -1
		for k := range p[0] {
			far := 0.0
			for i := range p {
				if far = math.Max(far, math.Abs(answers[i][c]-p[i][k])); !(far <= tolerance) {
					break
				}
			}
			if !(far <= tolerance) {
				continue
			}
			if fit >= 0 {
				return nil, false
			}
			fit = k
		}
		if fit < 0 || taken[fit] {
			return nil, false
		}
		out[c], taken[fit] = fit, true
	}
	return out, true
}

// matchItself returns the value that equals the answers, shifted for each image if shifted: the logits in
// front of an operator and its inverse, or before their largest was subtracted.
func (all *guarantees) matchItself(values []string, seen map[string]view, rows [][]float32,
	shifted bool) (match, bool) {
	for _, value := range values {
		v := seen[value].rows
		if len(v) != len(rows) || !all.of[value].linear() {
			continue
		}
		if equalRows(v, rows, shifted) {
			return match{value: value, itself: true, scale: 1}, true
		}
	}
	return match{}, false
}

func equalRows(a, b [][]float32, shifted bool) bool {
	size, largest := 0.0, 0.0
	for i, row := range a {
		if len(row) != len(b[i]) {
			return false
		}
		shift := 0.0
		if shifted {
			shift = float64(b[i][0]) - float64(row[0])
		}
		for c, v := range row {
			size = math.Max(size, math.Abs(float64(v)))
			d := math.Abs(float64(b[i][c]) - float64(v) - shift)
			if d != d {
				return false
			}
			largest = math.Max(largest, d)
		}
	}
	return largest <= exactTolerance*size
}

// half reports whether a model computes in half precision somewhere.
func half(m *onnx.Model) bool {
	is := func(t int32) bool {
		return t == int32(onnxpb.TensorProto_FLOAT16) || t == int32(onnxpb.TensorProto_BFLOAT16)
	}
	return slices.ContainsFunc(m.Proto.Graph.Initializer,
		func(t *onnxpb.TensorProto) bool { return is(t.DataType) }) ||
		slices.ContainsFunc(m.Proto.Graph.Node, func(n *onnxpb.NodeProto) bool {
			return n.OpType == "Cast" && is(int32(onnx.Node{NodeProto: n}.Int("to", 0)))
		})
}
