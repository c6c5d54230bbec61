package relevance

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

type onnxNode = onnxpb.NodeProto

// A Builder emits nodes into a graph and tracks the shapes of all values. Emitted names are
// <prefix>/<node>/<step> and deterministic.
type Builder struct {
	g          *onnx.Graph
	without    Without
	nodes      []*onnxNode
	producedBy map[Value]*onnxNode // by value: the emitted node that produces it
	node       string              // the node whose relevance is being emitted
	consts     map[string]Value
	constBytes int         // total size of emitted constants
	model      []onnx.Node // the nodes of the model; a group replaces its members
	groups     map[Value]group
	ops        map[string]*Op
	unit       Value          // placeholder for ones during the differentiation of an [opElementwise]
	flows      map[Value]bool // values that depend on the values wrt
	fixed      map[Value]bool // emitted values that depend on weights alone, and masks of texts

	// Lazily computed properties of the model's values.
	producers    map[Value]int  // by value: the index of the node that produces it
	afterWeights map[Value]bool // whether a layer with weights precedes it
	attended     map[Value]bool // results of [Builder.reachesAttention]
	linear       map[Value]bool // results of [Builder.feedsLinear]
	notNegative  map[Value]bool
	gatings      map[Value]gating
	carrying     map[Value]bool // results of [balancing.carries]
	bothHalves   bool           // for tests: as if no value were known to be non-negative
	seeds, wrt   []Value        // arguments of [Backward]
	batch        int            // number of images of the values wrt
	batchAxes    map[Value]batchAxis
	reads        map[Value][]int // by value: the indices of the nodes that read it
	lastReader   []int           // by index: the last node that reads a value produced before it
	sinceScaled  map[Value]int   // by value: number of nodes passed since relevance was last scaled

	// The entries of [Audit], for the policy of that name; nested propagations of its rules aren't recorded.
	audited       bool
	auditedPolicy string
	entries       []Entry
	toConstants   Value // relevance of constants at the current node

	// The shares of constants, of a policy with them.
	shares       Shares
	unknownTotal bool             // those of some node can't be told apart by image
	layouts      map[Value]layout // results of [Builder.layoutOf]

	err error
}

func newBuilder(g *onnx.Graph) *Builder {
	return &Builder{g: g, consts: map[string]Value{}, groups: map[Value]group{},
		producedBy: map[Value]*onnxNode{}, ops: operators(), fixed: map[Value]bool{},
		gatings: map[Value]gating{}}
}

// at sets the node whose relevance is emitted next.
func (b *Builder) at(n onnx.Node) { b.node = n.Output[0] }

// flush appends the emitted nodes to the graph, optimised for the given results.
func (b *Builder) flush(results ...Value) {
	b.optimise(results...)
	b.g.Proto.Graph.Node = append(b.g.Proto.Graph.Node, b.nodes...)
	b.nodes = nil
}

// Shape returns the shape of a value.
func (b *Builder) Shape(v Value) []int { return b.g.Shape(v) }

// Fail records that a node can't be handled; [Backward] returns the first such error.
func (b *Builder) Fail(n onnx.Node, format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("node %s: %s", n.Label(), fmt.Sprintf(format, args...))
	}
}

// Emit adds a node with one float output of the given shape.
func (b *Builder) Emit(op string, shape []int, in []Value, attrs ...onnx.Attr) Value {
	return b.EmitTyped(op, onnxpb.TensorProto_FLOAT, shape, in, attrs...)
}

// EmitTyped adds a node with one output of the given type and shape.
func (b *Builder) EmitTyped(op string, elem onnxpb.TensorProto_DataType, shape []int, in []Value,
	attrs ...onnx.Attr) Value {
	return b.EmitMany(op, []onnx.Type{{Elem: elem, Shape: shape}}, in, attrs...)[0]
}

// EmitMany adds a node with several outputs.
func (b *Builder) EmitMany(op string, types []onnx.Type, in []Value, attrs ...onnx.Attr) []Value {
	if b.unit != "" && slices.Contains(in, b.unit) {
		in = slices.Clone(in)
		for i, v := range in {
			if v == b.unit {
				in[i] = b.Scalar(1)
			}
		}
	}
	out := make([]Value, len(types))
	fixed := !slices.ContainsFunc(in, b.dynamic)
	for i, t := range types {
		out[i] = b.g.Fresh("grad/" + b.node + "/" + op)
		t.Shape = slices.Clone(t.Shape)
		b.g.Types[out[i]] = t
		b.fixed[out[i]] = fixed
	}
	b.add(onnx.NewNode(out[0], op, in, out, attrs...))
	return out
}

// add emits a node.
func (b *Builder) add(n *onnxNode) {
	b.nodes = append(b.nodes, n)
	b.producedBy[n.Output[0]] = n
}

// Broadcast returns the shape of two shapes broadcast by ONNX's rules.
func Broadcast(x, y []int) []int {
	out := make([]int, max(len(x), len(y)))
	for i := range out {
		dx, dy := 1, 1
		if k := i - len(out) + len(x); k >= 0 {
			dx = x[k]
		}
		if k := i - len(out) + len(y); k >= 0 {
			dy = y[k]
		}
		out[i] = max(dx, dy)
		if dx == 0 || dy == 0 {
			out[i] = 0
		}
	}
	return out
}

func (b *Builder) binary(op string, x, y Value) Value {
	return b.Emit(op, Broadcast(b.Shape(x), b.Shape(y)), []Value{x, y})
}

// Add, Sub, Mul and Div emit element-wise arithmetic with broadcasting.
func (b *Builder) Add(x, y Value) Value { return b.binary("Add", x, y) }
func (b *Builder) Sub(x, y Value) Value { return b.binary("Sub", x, y) }
func (b *Builder) Mul(x, y Value) Value {
	if b.unit != "" && slices.Equal(b.Shape(x), b.Shape(y)) {
		switch b.unit {
		case x:
			return y
		case y:
			return x
		}
	}
	return b.binary("Mul", x, y)
}
func (b *Builder) Div(x, y Value) Value { return b.binary("Div", x, y) }

// Unary emits an element-wise operator with one input, such as Neg, Exp or Relu.
func (b *Builder) Unary(op string, x Value) Value { return b.Emit(op, b.Shape(x), []Value{x}) }

// lacks reports whether the emitted nodes do without an operator.
func (b *Builder) lacks(op string) bool { return slices.Contains(b.without.Operators, op) }

// sign emits the signs of x: 1, 0 and −1.
func (b *Builder) sign(x Value) Value {
	if b.lacks("Sign") {
		return b.Sub(b.Greater(x, b.Scalar(0)), b.Less(x, b.Scalar(0)))
	}
	return b.Unary("Sign", x)
}

// square emits x².
func (b *Builder) square(x Value) Value { return b.Mul(x, x) }

// Scalar returns a constant of rank 0.
func (b *Builder) Scalar(x float32) Value {
	return b.constant(fmt.Sprintf("scalar %x", math.Float32bits(x)), func(name string) *onnxpb.TensorProto {
		return onnx.FloatTensor(name, []float32{x})
	})
}

// maxConstBytes limits the total size of the emitted constants. Real nets stay far below; a file may declare
// arbitrarily large shapes.
const maxConstBytes = 160 << 20

// alloc allocates the elements of a constant. It panics beyond maxConstBytes, which fails the current node.
func alloc[T any](b *Builder, shape ...int) []T {
	n, each := 1, int(reflect.TypeFor[T]().Size())
	for _, d := range shape {
		if d < 0 || d > (maxConstBytes-b.constBytes)/each/max(n, 1) {
			panic(fmt.Sprintf("a constant of shape %v is too large", shape))
		}
		n *= d
	}
	b.constBytes += n * each
	return make([]T, n)
}

// Ones returns a constant of ones.
func (b *Builder) Ones(shape ...int) Value {
	return b.constant(fmt.Sprintf("ones %v", shape), func(name string) *onnxpb.TensorProto {
		v := alloc[float32](b, shape...)
		for i := range v {
			v[i] = 1
		}
		return onnx.FloatTensor(name, v, shape...)
	})
}

// Ints returns a one-dimensional constant of int64.
func (b *Builder) Ints(v ...int) Value { return b.integers(onnx.IntTensor("", v, len(v))) }

// Int64s returns a constant of int64 of any shape.
func (b *Builder) Int64s(v []int64, shape ...int) Value {
	return b.integers(onnx.IntTensor("", v, shape...))
}

// integers returns a constant. It may be long, so its key is its hash.
func (b *Builder) integers(t *onnxpb.TensorProto) Value {
	return b.constant(fmt.Sprintf("integers %v %x", t.Dims, sha256.Sum256(t.RawData)),
		func(name string) *onnxpb.TensorProto {
			t.Name = name
			return t
		})
}

// Floats returns a constant of float32.
func (b *Builder) Floats(v []float32, shape ...int) Value {
	name := b.g.Fresh("grad/" + b.node + "/weight")
	b.g.AddWeight(onnx.FloatTensor(name, v, shape...))
	return name
}

func (b *Builder) constant(key string, make func(name string) *onnxpb.TensorProto) Value {
	if v, ok := b.consts[key]; ok {
		return v
	}
	name := b.g.Fresh("grad/const")
	b.g.AddWeight(make(name))
	b.consts[key] = name
	return name
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Reshape emits a change of shape, if it changes anything.
func (b *Builder) Reshape(x Value, shape ...int) Value {
	if slices.Equal(b.Shape(x), shape) {
		return x
	}
	return b.Emit("Reshape", shape, []Value{x, b.Ints(shape...)})
}

// Transpose emits a permutation of axes.
func (b *Builder) Transpose(x Value, perm ...int) Value {
	from := b.Shape(x)
	shape := make([]int, len(perm))
	long := make([]int64, len(perm))
	same := true
	for i, p := range perm {
		shape[i], long[i] = from[p], int64(p)
		same = same && i == p
	}
	if same {
		return x
	}
	return b.Emit("Transpose", shape, []Value{x}, onnx.Attr{Name: "perm", Value: long})
}

// SwapLast emits the transposition of the last two axes.
func (b *Builder) SwapLast(x Value) Value {
	perm := make([]int, len(b.Shape(x)))
	for i := range perm {
		perm[i] = i
	}
	k := len(perm)
	perm[k-1], perm[k-2] = k-2, k-1
	return b.Transpose(x, perm...)
}

// MatMul emits a matrix product with broadcast leading axes; both ranks are at least 2.
func (b *Builder) MatMul(x, y Value) Value {
	sx, sy := b.Shape(x), b.Shape(y)
	kx, ky := len(sx)-2, len(sy)-2
	shape := append(Broadcast(sx[:kx], sy[:ky]), sx[kx], sy[ky+1])
	return b.Emit("MatMul", shape, []Value{x, y})
}

// mask emits the result of a comparison as ones and zeros.
func (b *Builder) mask(comparison string, x, y Value) Value {
	shape := Broadcast(b.Shape(x), b.Shape(y))
	c := b.EmitTyped(comparison, onnxpb.TensorProto_BOOL, shape, []Value{x, y})
	return b.Emit("Cast", shape, []Value{c}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
}

// Greater emits the mask x > y. Values are multiplied by masks because Where is several times slower.
func (b *Builder) Greater(x, y Value) Value { return b.mask("Greater", x, y) }

// Less emits the mask x < y.
func (b *Builder) Less(x, y Value) Value { return b.mask("Less", x, y) }

// Sum emits the sum of x over axes, which are dropped, or kept with size 1. It is a product with ones: the
// results of ONNX Runtime's reductions depend on the batch and on alignment in the last bits.
func (b *Builder) Sum(x Value, axes []int, keep bool) Value {
	if len(axes) == 0 {
		return x
	}
	shape := b.Shape(x)
	var perm, rest []int
	n := 1
	kept := slices.Clone(shape)
	for i, d := range shape {
		if slices.Contains(axes, i) {
			n *= d
			kept[i] = 1
			continue
		}
		perm = append(perm, i)
		rest = append(rest, d)
	}
	sorted := slices.Clone(axes)
	slices.Sort(sorted)
	y := b.Transpose(x, append(perm, sorted...)...)
	y = b.Reshape(y, size(rest), n)
	y = b.MatMul(y, b.Ones(n, 1))
	if keep {
		return b.Reshape(y, kept...)
	}
	return b.Reshape(y, rest...)
}

// Unbroadcast sums g over the axes along which a value of the given shape was broadcast.
func (b *Builder) Unbroadcast(g Value, shape []int) Value {
	from := b.Shape(g)
	if slices.Equal(from, shape) {
		return g
	}
	extra := len(from) - len(shape)
	var axes []int
	for i, d := range from {
		if i < extra || shape[i-extra] == 1 && d != 1 {
			axes = append(axes, i)
		}
	}
	return b.Reshape(b.Sum(g, axes, false), shape...)
}
