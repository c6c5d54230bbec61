package model

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// A guarantee is the properties of a value's numbers that a graph ensures for every image: interval
// arithmetic distinguishes logits, which a linear layer leaves unbounded, from numbers that a normalisation
// has bounded.
type guarantee struct {
	varies    bool // depends on the image
	low, high float64

	// by labels the node that normalises or bounds the numbers; "" if there is none after the last linear
	// layer.
	by string

	// unit is the number for the probability 1, or if log, the factor of the logarithm of a probability; 0
	// if the numbers aren't probabilities. about means that another unit is possible.
	unit       float64
	log, about bool

	own   bool // every class has a separate probability
	whole bool // the numbers of a row are a whole distribution

	rounds bool   // the numbers are rounded
	never  string // why the numbers can't belong to classes, after the node's label; "" if they can
	label  string // of the node in never, or of an unknown one
}

var (
	unbounded = guarantee{varies: true, low: math.Inf(-1), high: math.Inf(1)}
	constant  = guarantee{low: math.Inf(-1), high: math.Inf(1)}
)

// linear reports whether a linear layer leaves the numbers unbounded.
func (g guarantee) linear() bool {
	return g.varies && g.by == "" && g.never == "" && (math.IsInf(g.low, -1) || math.IsInf(g.high, 1))
}

// probability reports whether the numbers are unit times a probability, or the logarithm of one.
func (g guarantee) probability() bool {
	switch {
	case !g.varies || g.by == "" || g.never != "" || g.unit == 0:
		return false
	case g.log:
		return true
	}
	return g.low >= -probabilityTolerance*g.unit && g.high <= (1+probabilityTolerance)*g.unit
}

// normalises reports whether the numbers, added to others without bounds, normalise these: they are
// probabilities, or a logarithm such as that of a sum of exponentials.
func (g guarantee) normalises() bool {
	return g.by != "" && g.never == "" && (g.unit != 0 || math.IsInf(g.low, 0) || math.IsInf(g.high, 0))
}

// guarantees are the guarantees of the values of a graph.
type guarantees struct {
	of     map[string]guarantee
	makers map[string]onnx.Node
	shapes map[string][]int // of values that were measured, for one batch
	fixed  map[string]*onnxpb.TensorProto
	texts  bool // the model takes texts
}

// guaranteesOf derives the guarantees of all values of a model whose nodes are in order. shapes are the
// known ones.
func guaranteesOf(m *onnx.Model, shapes map[string][]int, texts bool) *guarantees {
	all := &guarantees{map[string]guarantee{"": constant}, map[string]onnx.Node{}, shapes,
		map[string]*onnxpb.TensorProto{}, texts}
	for _, v := range m.Inputs() {
		all.of[v.Name] = unbounded
	}
	all.derive(m.Proto.Graph)
	return all
}

// derive derives the guarantees of the values of a graph or of a branch.
func (all *guarantees) derive(g *onnxpb.GraphProto) {
	for _, t := range g.Initializer {
		all.fixed[t.Name] = t
		all.of[t.Name] = ofConstant(t)
	}
	for _, proto := range g.Node {
		n := onnx.Node{NodeProto: proto}
		for _, v := range n.Output {
			all.makers[v] = n
		}
		if t := onnx.ConstantOf(n); t != nil && len(n.Output) == 1 {
			all.fixed[n.Output[0]] = t
			all.of[n.Output[0]] = ofConstant(t)
			continue
		}
		if n.OpType == "If" {
			all.branched(n)
			continue
		}
		out := all.made(n)
		for i, v := range n.Output {
			if v != "" {
				all.of[v] = out
			}
			if i > 0 && n.OpType == "TopK" {
				all.of[v] = unknown(n)
			}
		}
	}
}

// branched gives the outputs of an If the common guarantee of its branches. Values of the branches may have
// the same names.
func (all *guarantees) branched(n onnx.Node) {
	chosen := all.of[n.In(0)].varies
	for k, branch := range onnx.Bodies(n.NodeProto) {
		all.derive(branch)
		for i, v := range n.Output {
			out := unknown(n)
			if i < len(branch.Output) {
				out = all.of[branch.Output[i].Name]
			}
			if out.varies = out.varies || chosen; k > 0 {
				out = either(all.of[v], out)
			}
			all.of[v] = out
		}
	}
}

// mostNumbers limits the constants whose numbers are read.
const mostNumbers = 1 << 22

// numbers returns the numbers of a constant, nil for one that is large or has other types.
func numbers(t *onnxpb.TensorProto) []float64 {
	if t == nil || onnx.Size(onnx.ShapeOf(t)) > mostNumbers {
		return nil
	}
	if f, err := onnx.Float32s(t); err == nil {
		out := make([]float64, len(f))
		for i, v := range f {
			out[i] = float64(v)
		}
		return out
	}
	whole, err := onnx.Int64s(t)
	if err != nil {
		return nil
	}
	out := make([]float64, len(whole))
	for i, v := range whole {
		out[i] = float64(v)
	}
	return out
}

func ofConstant(t *onnxpb.TensorProto) guarantee {
	if onnx.Size(onnx.ShapeOf(t)) > 1<<16 { // a layer's weight
		return constant
	}
	v := numbers(t)
	if len(v) == 0 || slices.ContainsFunc(v, math.IsNaN) {
		return constant
	}
	return guarantee{low: slices.Min(v), high: slices.Max(v)}
}

// unknown is the guarantee of a node about which nothing is known.
func unknown(n onnx.Node) guarantee {
	g := unbounded
	g.by, g.label = n.Label(), n.Label()
	g.never = "isn't known to leave class scores what they are"
	return g
}

// decides is the guarantee of a node that chooses classes.
func decides(n onnx.Node, why string) guarantee {
	g := unknown(n)
	g.never = why
	return g
}

// made returns the guarantee of a node's output.
func (all *guarantees) made(n onnx.Node) guarantee {
	in := make([]guarantee, len(n.Input))
	varies := false
	for i, v := range n.Input {
		g, ok := all.of[v]
		if !ok {
			g = unbounded // of a graph around this one
		}
		in[i] = g
		varies = varies || g.varies
	}
	if len(onnx.Bodies(n.NodeProto)) > 0 {
		return unknown(n)
	}
	if n.OpType == "Shape" || n.OpType == "Size" || n.OpType == "ConstantOfShape" {
		return constant
	}
	rule := ruleOf(n)
	if rule == nil || len(in) == 0 {
		if varies || len(in) == 0 {
			g := unknown(n)
			g.varies = varies || rewrite.Random(n)
			return g
		}
		return constant
	}
	out := rule(all, n, in)
	if out.varies = varies; !varies {
		return guarantee{low: out.low, high: out.high}
	}
	for _, g := range in { // sorted numbers stay sorted
		if g.never == sorts && !slices.Contains(layers, n.OpType) {
			out.never, out.label = g.never, g.label
		}
	}
	if math.IsNaN(out.low) {
		out.low = math.Inf(-1)
	}
	if math.IsNaN(out.high) {
		out.high = math.Inf(1)
	}
	return out
}

// quotient returns the guarantee of x/y.
func (all *guarantees) quotient(n onnx.Node, x, y guarantee) guarantee {
	if !y.varies {
		return times(x, reciprocal(y))
	}
	if !x.varies { // 1/(1+exp(−x))
		low, high := product(x, reciprocal(y))
		out := merge(guarantee{low: low, high: high}, x, y)
		if out.by == "" {
			out.by = n.Label()
		}
		if out.never == "" && x.low == x.high && low >= 0 && high > 0 && !math.IsInf(high, 1) {
			out.unit, out.own = high, true
		}
		return out
	}
	if x.low >= 0 && all.exceeds(n.In(1), n.In(0), 8) {
		summed := all.row(n.In(0)) && all.sums(n.In(1), n.In(0), 8)
		return guarantee{high: 1, unit: 1, own: !summed, whole: summed, by: n.Label(), rounds: x.rounds}
	}
	out := decides(n, "divides by a number that depends on the image")
	if x.never != "" {
		out.never, out.label = x.never, x.label
	}
	return out
}

// exceeds reports whether the graph ensures that a value is at least as large as a nonnegative one, such as
// a sum with it.
func (all *guarantees) exceeds(sum, part string, depth int) bool {
	if all.same(sum, part) {
		return true
	}
	n, ok := all.makers[sum]
	if !ok || depth == 0 {
		return false
	}
	switch n.OpType {
	case "ReduceSum", "ReduceL1":
		return all.exceeds(n.In(0), part, depth-1)
	case "Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Clip", "Flatten", "Transpose":
		return all.exceeds(n.In(0), part, depth-1)
	case "Add", "Max", "Sum":
		for i, v := range n.Input {
			nonnegative := true
			for k, other := range n.Input {
				nonnegative = nonnegative && (k == i || n.OpType == "Max" || all.of[other].low >= 0)
			}
			if nonnegative && all.exceeds(v, part, depth-1) {
				return true
			}
		}
	}
	return false
}

// sums reports whether a value is the sum of all of another's numbers, apart from bounds.
func (all *guarantees) sums(sum, part string, depth int) bool {
	n, ok := all.makers[sum]
	if !ok || depth == 0 {
		return false
	}
	switch n.OpType {
	case "ReduceSum", "ReduceL1":
		return all.same(n.In(0), part)
	case "Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Clip", "Flatten":
		return all.sums(n.In(0), part, depth-1)
	}
	return false
}

// row reports whether a value has at most one axis besides the images', so that its normalisation covers
// all its numbers together.
func (all *guarantees) row(value string) bool {
	long := 0
	shape, known := all.shapes[value]
	for _, d := range shape[min(1, len(shape)):] {
		if d > 1 {
			long++
		}
	}
	return known && long <= 1
}

// normaliser reports whether a value is the logarithm of the sum of the exponentials of another.
func (all *guarantees) normaliser(value, of string) bool {
	n := all.makers[all.source(value)]
	switch n.GetOpType() {
	case "ReduceLogSumExp":
		return all.same(n.In(0), of)
	case "Log":
		sum := all.makers[all.source(n.In(0))]
		if sum.GetOpType() != "ReduceSum" {
			return false
		}
		e := all.makers[all.source(sum.In(0))]
		return e.GetOpType() == "Exp" && all.same(e.In(0), of)
	}
	return false
}

// same reports whether two names stand for the same numbers.
func (all *guarantees) same(a, b string) bool { return all.source(a) == all.source(b) }

// source returns the value of which a value is a view, or the value itself.
func (all *guarantees) source(v string) string {
	for {
		n, ok := all.makers[v]
		if !ok || !isView(n) || len(n.Input) == 0 {
			return v
		}
		v = n.Input[0]
	}
}

// mixed returns the guarantee of a linear layer's output: unbounded, unless the layer only mixes
// probabilities by weights that aren't negative.
func (all *guarantees) mixed(n onnx.Node, x guarantee) guarantee {
	out := guarantee{low: math.Inf(-1), high: math.Inf(1)}
	w := all.fixed[n.In(1)]
	if !x.probability() || x.log || w == nil || n.In(2) != "" && n.OpType != "Gemm" {
		return out
	}
	if len(w.Dims) != 2 || n.OpType != "Gemm" && n.OpType != "MatMul" || n.Float("alpha", 1) != 1 {
		return out
	}
	v := numbers(w)
	if len(v) == 0 || slices.Min(v) < 0 || all.of[n.In(2)].low < 0 && n.In(2) != "" {
		return out
	}
	rows, columns := int(w.Dims[0]), int(w.Dims[1])
	most := 0.0
	each := func(outputs, inputs int, at func(o, i int) float64) {
		for o := range outputs {
			sum := 0.0
			for i := range inputs {
				if x.whole {
					sum = math.Max(sum, at(o, i))
				} else {
					sum += at(o, i)
				}
			}
			most = math.Max(most, sum)
		}
	}
	if n.Int("transB", 0) != 0 {
		each(rows, columns, func(o, i int) float64 { return v[o*columns+i] })
	} else {
		each(columns, rows, func(o, i int) float64 { return v[i*columns+o] })
	}
	if most <= 0 {
		return out
	}
	out = x
	out.low, out.high, out.unit, out.about, out.whole = 0, x.high*most, x.unit*most, true, false
	if n.In(2) != "" {
		out.high += all.of[n.In(2)].high
	}
	return out
}
