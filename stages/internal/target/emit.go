package target

import (
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// An emitter emits the nodes of an expression. Every value has an axis of images in front of its own, of size
// 1 for a value that all images share.
type emitter struct {
	head           *Head
	graph          *onnx.Graph
	f              *onnx.Fragment
	answer, params string
}

// Emit emits the values of an expression, [rows, 1], given the names of the model's answers, [rows, Size],
// and of the parameters, [rows or 1, Width]. It records the types of all values in the graph.
func (h *Head) Emit(g *onnx.Graph, f *onnx.Fragment, answer, params string) string {
	e := &emitter{h, g, f, answer, params}
	v := e.emit(h.root)
	return e.reshape(v, []int{1})
}

func (e *emitter) emit(t *term) string {
	switch {
	case t.value != nil && len(t.value.shape) == 0:
		return e.number(t.value.number())
	case t.value != nil:
		v := make([]float32, len(t.value.data))
		for i, x := range t.value.data {
			v[i] = float32(x)
		}
		return e.floats("vectors", v, append([]int{1}, t.Shape...)...)
	case t.at >= 0:
		return e.cut(e.params, t.at, t.Shape)
	case t.operator == &read:
		return e.cut(e.answer, e.head.sizeBefore(t.node.text), t.Shape)
	}
	args := make([]string, len(t.args))
	values := make([]value, len(t.args))
	for k, a := range t.args {
		if a != nil {
			args[k] = e.emit(a)
			values[k] = args[k]
		}
	}
	if t.made != nil {
		return t.made(e, t, values).(string)
	}
	return t.operator.emit(e, t, args)
}

// apply implements kit.
func (e *emitter) apply(o *operator, ints []int, args ...value) value {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.(string)
	}
	return o.emit(e, &term{operator: o, ints: ints}, names)
}

func (e *emitter) constant(v float64) value { return e.number(v) }

// shape returns the shape of a value, without the axis of images.
func (e *emitter) shape(v value) []int { return e.graph.Shape(v.(string))[1:] }

// op emits a node of an operator, given the shape of its result for an image.
func (e *emitter) op(op string, shape []int, in []string, attrs ...onnx.Attr) string {
	rows := 1
	for _, v := range in {
		if t, ok := e.graph.Types[v]; ok && t.Elem == onnxpb.TensorProto_FLOAT && len(t.Shape) > 0 {
			rows = max(rows, t.Shape[0])
		}
	}
	return e.typed(e.f.Op(op, in, attrs...), append([]int{rows}, shape...))
}

func (e *emitter) typed(v string, shape []int) string {
	e.graph.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	return v
}

// ints emits a list of whole numbers.
func (e *emitter) ints(hint string, v []int64) string {
	name := e.graph.Fresh("runexp_" + hint)
	shape := make([]int, len(v))
	for i, x := range v {
		shape[i] = int(x)
	}
	e.graph.AddWeight(onnx.IntTensor(name, shape, len(v)))
	return name
}

// number emits a constant.
func (e *emitter) number(v float64) string { return e.floats("number", []float32{float32(v)}, 1) }

// places emits the numbers from a first one on, n of them.
func (e *emitter) places(n, first int) string {
	v := make([]float32, n)
	for k := range v {
		v[k] = float32(k + first)
	}
	return e.floats("places", v, 1, n)
}

func (e *emitter) floats(hint string, v []float32, shape ...int) string {
	name := e.graph.Fresh("runexp_" + hint)
	e.graph.AddWeight(onnx.FloatTensor(name, v, shape...))
	return e.typed(name, shape)
}

// cut emits the elements of rows from one on, in a shape.
func (e *emitter) cut(rows string, from int, shape []int) string {
	n := size(shape)
	if whole := e.shape(rows); from > 0 || n < whole[0] {
		rows = e.op("Slice", []int{n}, []string{rows, e.ints("from", []int64{int64(from)}),
			e.ints("to", []int64{int64(from + n)}), e.ints("axis", []int64{1})})
	}
	return e.reshape(rows, shape)
}

// reshape emits a value in another shape, unless it has it.
func (e *emitter) reshape(v string, shape []int) string {
	if slices.Equal(e.shape(v), shape) {
		return v
	}
	to := []int64{int64(e.graph.Shape(v)[0])}
	for _, d := range shape {
		to = append(to, int64(d))
	}
	return e.op("Reshape", shape, []string{v, e.ints("shape", to)})
}

// paired emits an operator of two values, after giving both as many axes as the larger one has.
func (e *emitter) paired(op, a, b string) string {
	shape, _ := joined(e.shape(a), e.shape(b))
	lift := func(v string) string {
		missing := len(shape) - len(e.shape(v))
		return e.reshape(v, append(slices.Repeat([]int{1}, missing), e.shape(v)...))
	}
	return e.op(op, shape, []string{lift(a), lift(b)})
}

// pick emits the element along an axis at an index, one a row: the sum over the axis of the elements times 1
// at the index and 0 elsewhere, which is max(1 − |place − index|, 0).
func (e *emitter) pick(x, index string, axis int) string {
	n := e.shape(x)[axis]
	d := e.paired("Sub", e.places(n, 0), index)
	d = e.op("Abs", e.shape(d), []string{d})
	at := e.paired("Sub", e.number(1), d)
	at = e.op("Relu", e.shape(at), []string{at})
	along := slices.Repeat([]int{1}, len(e.shape(x)))
	along[axis] = n
	product := e.paired("Mul", x, e.reshape(at, along))
	return sum.emit(e, &term{operator: &sum, ints: []int{axis}}, []string{product})
}

// Unit returns what the value is: a probability if it is bounded by 0 and 1, else a value.
func (h *Head) Unit() string {
	if h.Low >= 0 && h.High <= 1 {
		return "probability"
	}
	return "value"
}

// Bounded reports whether the value has bounds.
func (h *Head) Bounded() bool { return !math.IsInf(h.Low, -1) && !math.IsInf(h.High, 1) }
