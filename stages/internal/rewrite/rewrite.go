// Package rewrite brings models into the one form that graphs are derived from:
// nodes in order and whole, numbers in single precision, operators of opset
// [Opset]. Every rewrite is a pure step from a model to a model that computes the
// same.
//
// A model's operators are brought to one version by a table of passes, one an
// operator that changed its meaning between versions. A pass sees a node and
// writes what stands for it. What no pass can express is refused, all of it at
// once, by the names of the nodes.
package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Opset is the version of ONNX's operators that [ToOpset] brings models to. Later
// ones have fewer kernels for CUDA in ONNX Runtime, which takes a kernel only for
// exactly the version that it was written for.
const Opset = 17

// Oldest and Newest are the versions that [ToOpset] reads.
const (
	Oldest = 7
	Newest = 23
)

// A pass rewrites the nodes of an operator in models of the opsets from…to.
type pass struct {
	op       string
	from, to int
	apply    func(e *edit, n onnx.Node) error
}

// passes returns the table of all passes, sorted by operator and version. At most
// one matches a node.
func passes() []pass {
	return slices.Concat(
		averagePool, batchNormalization, cast, clip, dropout, gelu, gridSample,
		mish, pad, reduce, resize, rmsNormalization, roiAlign, scatter, slice, softmax, split, squeeze, topK, upsample,
	)
}

// newer are the operators that came after opset 17 and that no pass expresses.
var newer = []string{
	"AffineGrid", "Attention", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CenterCropPad", "Col2Im", "DeformConv",
	"GroupNormalization", "ImageDecoder", "RegexFullMatch", "RotaryEmbedding", "StringConcat", "StringSplit",
}

// ToOpset brings a model's operators to version [Opset]. shapes has the shapes of
// values as far as they are known, with [onnx.Free] where a dimension isn't;
// some operators can be brought over only where theirs are. The error names every
// node that can't be.
func ToOpset(m *onnx.Model, shapes map[string][]int) error {
	version := m.Opset()
	if version < Oldest || version > Newest {
		return fmt.Errorf("the model uses opset %d: %d to %d are supported", version, Oldest, Newest)
	}
	e := &edit{m: m, version: version, shapes: shapes, table: map[string][]pass{}}
	for _, p := range passes() {
		e.table[p.op] = append(e.table[p.op], p)
	}
	e.graph(m.Proto.Graph)
	if e.refused != nil {
		return fmt.Errorf("the model can't be brought from opset %d to %d: %s", version, Opset, list(e.refused))
	}
	m.Proto.OpsetImport = []*onnxpb.OperatorSetIdProto{{Version: Opset}}
	m.Proto.IrVersion = 8 // the one of opset 17
	m.Proto.Functions = nil
	return nil
}

// list joins the first of many clauses.
func list(clauses []string) string {
	const shown = 8
	if n := len(clauses) - shown; n > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(clauses[:shown], "; "), n)
	}
	return strings.Join(clauses, "; ")
}

// An edit is a model on its way to another opset.
type edit struct {
	m       *onnx.Model
	version int
	shapes  map[string][]int
	table   map[string][]pass

	scope   []*onnxpb.GraphProto // the graph in work and those around it
	nodes   []*onnxpb.NodeProto  // what stands for the nodes seen so far
	refused []string
}

// graph rewrites the nodes of g and of the graphs inside them.
func (e *edit) graph(g *onnxpb.GraphProto) {
	outer := e.nodes
	e.nodes = nil
	e.scope = append(e.scope, g)
	for _, proto := range g.Node {
		n := onnx.Node{NodeProto: proto}
		for _, a := range n.Attribute {
			for _, inner := range append(slices.Clone(a.Graphs), a.G) {
				if inner != nil {
					e.graph(inner)
				}
			}
		}
		if err := e.node(n); err != nil {
			e.refused = append(e.refused, fmt.Sprintf("node %s: %v", n.Label(), err))
		}
	}
	g.Node = e.nodes
	e.nodes = outer
	e.scope = e.scope[:len(e.scope)-1]
}

func (e *edit) node(n onnx.Node) error {
	if n.Domain != "" && n.Domain != "ai.onnx" {
		return fmt.Errorf("its operator is of %s, not one of ONNX's own", n.Domain)
	}
	n.Domain = ""
	if slices.Contains(newer, n.OpType) {
		return fmt.Errorf("opset %d has no such operator", Opset)
	}
	for _, p := range e.table[n.OpType] {
		if p.from <= e.version && e.version <= p.to {
			if n.In(0) == "" || len(n.Output) == 0 {
				return fmt.Errorf("it has no input or no output")
			}
			return p.apply(e, n)
		}
	}
	e.keep(n)
	return nil
}

// keep leaves a node, as it now is, in its place.
func (e *edit) keep(n onnx.Node) { e.nodes = append(e.nodes, n.NodeProto) }

// op writes a node and returns the name of its output.
func (e *edit) op(hint, op string, in []string, attrs ...onnx.Attr) string {
	out := e.m.Fresh(hint + "/" + op)
	e.to(out, op, in, attrs...)
	return out
}

// to writes a node whose output is called out.
func (e *edit) to(out, op string, in []string, attrs ...onnx.Attr) {
	e.nodes = append(e.nodes, onnx.NewNode(out, op, in, []string{out}, attrs...))
}

// ints adds a constant and returns its name.
func (e *edit) ints(hint string, v ...int) string {
	long := make([]int64, len(v))
	for i, x := range v {
		long[i] = int64(x)
	}
	return e.weight(onnx.IntTensor(e.m.Fresh(hint), long, len(v)))
}

// scalar adds a constant of rank 0 and returns its name.
func (e *edit) scalar(hint string, v float32) string {
	return e.weight(onnx.FloatTensor(e.m.Fresh(hint), []float32{v}))
}

func (e *edit) weight(t *onnxpb.TensorProto) string {
	g := e.m.Proto.Graph
	g.Initializer = append(g.Initializer, t)
	return t.Name
}

// known returns the integers of a constant.
func (e *edit) known(name string) ([]int, error) {
	t := e.constant(name)
	if t == nil {
		return nil, fmt.Errorf("%q isn't constant", name)
	}
	long, err := onnx.Int64s(t)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(long))
	for i, v := range long {
		out[i] = int(v)
	}
	return out, nil
}

// constant returns a weight or what a Constant node holds, nil for anything else.
func (e *edit) constant(name string) *onnxpb.TensorProto {
	for _, g := range slices.Backward(e.scope) {
		for _, t := range g.Initializer {
			if t.Name == name {
				return t
			}
		}
		for _, n := range slices.Concat(g.Node, e.nodes) {
			if n.OpType == "Constant" && len(n.Output) == 1 && n.Output[0] == name && len(n.Attribute) == 1 {
				return n.Attribute[0].T
			}
		}
	}
	return nil
}

// rank returns the number of dimensions of a value.
func (e *edit) rank(name string) (int, error) {
	shape, ok := e.shapes[name]
	if !ok {
		return 0, fmt.Errorf("the shape of %q isn't known", name)
	}
	return len(shape), nil
}

// drop removes an attribute.
func drop(n onnx.Node, name string) {
	n.Attribute = slices.DeleteFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.Name == name })
}

// unused reports whether no output of n from number i on is asked for.
func unused(n onnx.Node, i int) bool {
	return !slices.ContainsFunc(n.Output[min(i, len(n.Output)):], func(v string) bool { return v != "" })
}

// attrToInput turns an attribute of integers into an input of number i.
func (e *edit) attrToInput(n onnx.Node, name string, i int) {
	if !n.Has(name) {
		return
	}
	for len(n.Input) <= i {
		n.Input = append(n.Input, "")
	}
	n.Input[i] = e.ints(n.Output[0]+"/"+name, n.Ints(name)...)
	drop(n, name)
}

// inputToAttr turns input i, a constant of integers, into an attribute.
func (e *edit) inputToAttr(n onnx.Node, name string, i int) error {
	if n.In(i) == "" {
		n.Input = n.Input[:min(i, len(n.Input))]
		return nil
	}
	v, err := e.known(n.In(i))
	if err != nil {
		return err
	}
	long := make([]int64, len(v))
	for k, x := range v {
		long[k] = int64(x)
	}
	n.Input = n.Input[:i]
	n.Attribute = append(n.Attribute, onnx.NewNode("", "", nil, nil, onnx.Attr{Name: name, Value: long}).Attribute...)
	return nil
}
