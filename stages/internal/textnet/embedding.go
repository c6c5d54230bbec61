package textnet

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// An Embedding is where a model's ids become vectors.
type Embedding struct {
	// Values are those that may have a vector for each token, made of its id alone, the best first: all that
	// the model knows of the ids passes through each. The one with such a shape is the embedding.
	Values []string
	// Vocabulary is the number of ids that have a row in all tables, 0 if the ids are changed before, or a
	// table's size is unknown.
	Vocabulary int
	// Least is the number of rows of the smallest table, 0 if no size is known.
	Least int
	// Tables is the number of tables with a vector for each id.
	Tables int
	// Problem is why there are no values.
	Problem string
}

// A trace describes a value of which each part depends on one token's id alone.
type trace struct {
	tables uint64 // those of which it is made
	raw    bool   // it is the ids, or their one-hot code
	rank   int    // 0 if unknown
	hot    bool   // it is a one-hot code
	moved  bool   // its last axis may not be that of a token's vector
	float  bool
}

// A finder follows the ids through a graph.
type finder struct {
	g         *onnxpb.GraphProto
	constants map[string]constant
	at        map[string]trace
	order     []string // the values of at, in the order of the graph
	tables    []string // the outputs of the nodes that look up
	rows      []int    // of each table that the ids as they are choose from, −1 if unknown
	least     int
	readers   map[string][]*onnxpb.NodeProto
	made      map[string]*onnxpb.NodeProto
}

// A constant is a value that depends on no input. Its shape is nil if unknown.
type constant struct {
	shape []int
	float bool
}

// Find follows the input ids through a graph whose nodes are in topological order.
func Find(m *onnx.Model, ids string) Embedding {
	f := finder{g: m.Proto.Graph, constants: map[string]constant{}, at: map[string]trace{},
		readers: map[string][]*onnxpb.NodeProto{}, made: map[string]*onnxpb.NodeProto{}}
	for _, t := range f.g.Initializer {
		f.constants[t.Name] = constant{onnx.ShapeOf(t), floating(t.DataType)}
	}
	f.set(ids, trace{raw: true, rank: 2})
	for _, n := range f.g.Node {
		for _, v := range onnx.Taken(n) {
			f.readers[v] = append(f.readers[v], n)
		}
		for _, v := range n.Output {
			f.made[v] = n
		}
		f.visit(onnx.Node{NodeProto: n})
	}
	return f.embedding()
}

func (f *finder) set(v string, t trace) {
	f.at[v] = t
	f.order = append(f.order, v)
}

func floating[T ~int32](t T) bool {
	switch onnxpb.TensorProto_DataType(t) {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_BFLOAT16,
		onnxpb.TensorProto_DOUBLE:
		return true
	}
	return false
}

// visit records the output of a node, if it is constant or follows from single ids.
func (f *finder) visit(n onnx.Node) {
	if len(n.Output) == 0 || n.Domain != "" && n.Domain != "ai.onnx" || len(onnx.Bodies(n.NodeProto)) > 0 {
		return
	}
	if c, ok := f.constantOf(n); ok {
		f.constants[n.Output[0]] = c
		return
	}
	if t, ok := f.traceOf(n); ok {
		f.set(n.Output[0], t)
	}
}

// constantOf returns the constant that a node computes.
func (f *finder) constantOf(n onnx.Node) (c constant, ok bool) {
	if n.OpType == "Constant" {
		if t := onnx.ConstantOf(n); t != nil {
			return constant{onnx.ShapeOf(t), floating(t.DataType)}, true
		}
		return constant{}, true
	}
	if n.OpType == "ConstantOfShape" { // one number, in any shape
		c = constant{[]int{1}, true}
		for _, a := range n.Attribute {
			c.float = a.T == nil || floating(a.T.DataType)
		}
		return c, true
	}
	for _, v := range n.Input {
		if _, known := f.constants[v]; v != "" && !known {
			return c, false
		}
	}
	if len(n.Input) == 0 {
		return c, false
	}
	c = f.constants[n.In(0)]
	switch n.OpType {
	case "Identity":
	case "Cast":
		c.float = floating(int32(n.Int("to", 0)))
	case "DequantizeLinear":
		c.float = true
	case "Transpose":
		if len(c.shape) != 2 {
			return constant{float: c.float}, true
		}
		c.shape = []int{c.shape[1], c.shape[0]}
	default:
		c.shape = nil
	}
	return c, true
}

// traceOf returns the trace of a node's output, if each part of it follows from one id.
func (f *finder) traceOf(n onnx.Node) (t trace, ok bool) {
	switch n.OpType {
	case "Gather":
		return f.lookup(n)
	case "MatMul":
		return f.product(n)
	case "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand",
		"DequantizeLinear", "OneHot", "Dropout":
		if t, ok = f.at[n.In(0)]; ok {
			t = t.after(n)
			if s := f.constants[n.In(1)].shape; n.OpType == "Reshape" && len(s) == 1 {
				t.rank = s[0]
			}
			t.float = t.float || n.OpType == "OneHot" && f.constants[n.In(2)].float
		}
		return t, ok
	case "Concat", "Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Clip", "Where", "Equal", "Less",
		"LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or", "Xor", "Neg", "Abs", "Relu", "Tanh",
		"Sigmoid", "Sqrt", "Pow", "BitwiseAnd", "BitwiseXor", "BitShift", "Sign", "CastLike":
		return f.elementwise(n)
	}
	return t, false
}

// after returns the trace of what a node makes of one value.
func (t trace) after(n onnx.Node) trace {
	switch n.OpType {
	case "Cast":
		t.float = floating(int32(n.Int("to", 0)))
	case "DequantizeLinear":
		t.float = true
	case "Unsqueeze":
		t.rank += min(t.rank, 1)
	case "OneHot":
		t.rank, t.hot, t.moved = t.rank+1, true, n.Int("axis", -1) != -1
	case "Transpose":
		t.moved = t.moved || t.rank != 2
	case "Reshape", "Flatten", "Squeeze":
		t.rank = 0
	}
	return t
}

// lookup traces the rows of a table that ids choose.
func (f *finder) lookup(n onnx.Node) (t trace, ok bool) {
	table, isTable := f.constants[n.In(0)]
	if t, ok = f.at[n.In(1)]; !ok || !isTable || t.tables != 0 {
		return t, false
	}
	axis, rows := n.Int("axis", 0), -1
	if s := table.shape; s != nil {
		if axis < 0 {
			axis += len(s)
		}
		if axis < len(s) {
			rows = s[axis]
		}
		t.rank += min(t.rank, 1) * (len(s) - 1)
	}
	if len(table.shape) == 1 && !table.float { // other ids
		t.raw = false
		if rows > 0 {
			f.rows = append(f.rows, rows)
		}
		return t, true
	}
	return f.look(n, t, rows, axis != 0, table.float), true
}

// product traces a one-hot code times a table.
func (f *finder) product(n onnx.Node) (t trace, ok bool) {
	table, isTable := f.constants[n.In(1)]
	if t, ok = f.at[n.In(0)]; !ok || !isTable || !t.hot || t.moved || t.rank < 3 || t.tables != 0 {
		return t, false
	}
	rows := -1
	if len(table.shape) == 2 {
		rows = table.shape[0]
	}
	return f.look(n, t, rows, false, true), true
}

// look records a table of which a node takes rows, and returns the trace of these.
func (f *finder) look(n onnx.Node, t trace, rows int, moved, float bool) trace {
	if len(f.tables) == 64 {
		return trace{}
	}
	if rows > 0 && (f.least == 0 || rows < f.least) {
		f.least = rows
	}
	if !t.raw {
		rows = -1
	}
	t.tables = 1 << len(f.tables)
	f.tables, f.rows = append(f.tables, n.Output[0]), append(f.rows, rows)
	t.raw, t.hot, t.moved, t.float = false, false, t.moved || moved, float
	return t
}

// elementwise traces what is made of values that follow from the same ids and of constants for all tokens.
func (f *finder) elementwise(n onnx.Node) (t trace, ok bool) {
	for _, v := range n.Input {
		if v == "" {
			continue
		}
		in, traced := f.at[v]
		if c, isConstant := f.constants[v]; !traced && (!isConstant || !everywhere(c.shape)) {
			return t, false
		}
		t.rank = max(t.rank, in.rank, len(f.constants[v].shape))
		t.tables |= in.tables
		if !traced {
			continue
		}
		t.moved, t.hot, t.float = t.moved || in.moved, t.hot || in.hot, t.float || in.float
		t.raw = t.raw || in.raw
		ok = true
	}
	return t.joined(n, ok)
}

// joined returns the trace of what a node makes of values with the trace t together, false if it isn't of
// single ids.
func (t trace) joined(n onnx.Node, ok bool) (trace, bool) {
	if n.OpType == "Concat" {
		axis := n.Int("axis", 0)
		ok = ok && !t.moved && (axis == -1 || t.rank > 0 && axis == t.rank-1)
	}
	equal := n.OpType == "Equal" && t.raw && t.rank > 2 // a one-hot code, of ids in a column of their own
	t.raw, t.hot = equal || t.raw && t.hot, t.hot || equal
	t.float = t.float && n.OpType != "Equal"
	return t, ok
}

// everywhere reports whether a constant of this shape may be the same for all tokens: only its last axis is
// larger than one.
func everywhere(shape []int) bool {
	for i, d := range shape {
		if d != 1 && i < len(shape)-1 {
			return false
		}
	}
	return shape != nil
}

// embedding chooses the values.
func (f *finder) embedding() Embedding {
	out := Embedding{Tables: len(f.tables), Least: f.least}
	for _, r := range f.rows {
		if r < 0 {
			out.Vocabulary = 0
			break
		}
		if out.Vocabulary == 0 || r < out.Vocabulary {
			out.Vocabulary = r
		}
	}
	if len(f.tables) == 0 {
		for _, v := range f.order {
			if t := f.at[v]; t.hot && t.float {
				out.Values = append(out.Values, v)
			}
		}
		if out.Values == nil {
			out.Problem = "no table of vectors is looked up by the ids alone"
		}
		return out
	}
	all := uint64(1)<<len(f.tables) - 1
	if len(f.tables) == 64 {
		all = ^uint64(0)
	}
	for _, v := range f.order {
		if f.at[v].tables == all && f.passes(v) {
			out.Values = f.follow(f.biased(v))
			return out
		}
	}
	out.Problem = fmt.Sprintf("the ids look up %d tables, at %s, and no value joins what they give before "+
		"tokens are mixed", bits.OnesCount64(all), strings.Join(f.tables[:min(3, len(f.tables))], ", "))
	return out
}

// passes reports whether all that is made of rows of tables passes through a value.
func (f *finder) passes(v string) bool {
	behind := map[string]bool{v: true}
	for _, w := range f.order {
		t := f.at[w]
		if t.tables == 0 || behind[w] {
			continue
		}
		if slices.ContainsFunc(f.made[w].GetInput(), func(u string) bool { return behind[u] }) {
			behind[w] = true
			continue
		}
		for _, n := range f.readers[w] {
			if n.OpType == "Shape" {
				continue
			}
			for _, o := range n.Output {
				if _, traced := f.at[o]; o != v && (!traced || slices.ContainsFunc(n.Input,
					func(u string) bool { return behind[u] })) {
					return false
				}
			}
		}
	}
	return true
}

// biased returns the sum of a value that a product with a table gives and a bias, if nothing else reads it:
// simplification merges both. It returns other values as they are.
func (f *finder) biased(v string) string {
	made, readers := f.made[v], f.readers[v]
	if made == nil || made.OpType != "MatMul" || len(readers) != 1 || readers[0].OpType != "Add" {
		return v
	}
	if sum := readers[0].Output[0]; f.at[sum].tables != 0 {
		return sum
	}
	return v
}

// follow returns a value, if it is of floating-point numbers, and those that a chain of nodes makes of it
// which only change its type or its axes.
func (f *finder) follow(v string) (out []string) {
	for {
		if f.at[v].float {
			out = append(out, v)
		}
		readers := slices.DeleteFunc(slices.Clone(f.readers[v]),
			func(n *onnxpb.NodeProto) bool { return n.OpType == "Shape" })
		if len(readers) != 1 || len(readers[0].Output) == 0 {
			return out
		}
		switch readers[0].OpType {
		case "Cast", "DequantizeLinear", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze":
		default:
			return out
		}
		if v = readers[0].Output[0]; f.at[v].tables == 0 {
			return out
		}
	}
}
