// Package rewrite has the passes of package lower that need no types: they normalise a model's nodes,
// precision and operators. Every pass changes the model in place to one that computes the same, except for
// the rounding of doubles.
//
// The path of the data. A file that is read goes through [InlineFunctions] (inline_functions.go) and
// [Evaluation] (evaluation.go); a model of texts gets a single input (text_input.go), and further
// inputs can be held constant (hold_inputs.go). Then come
// [KernelShapes] (kernel_shapes.go), [TopologicalOrder]
// (topological_order.go), which refuses invalid nodes (check.go, and check_fused.go for ONNX Runtime's own
// operators), [SinglePrecision] (single_precision.go), [Dequantise] (dequantise.go), [GroupNormalization]
// (op_groupnormalization.go), [InlineBranches] (inline_branches.go), [SeparatePads] (separate_pads.go) and
// [ToOpset]. Of models for several batches, [FreeBatch] (free_batch.go) makes one for any.
//
// ToOpset is in rewrite.go: a table of converters converts operators to one opset, one file for each operator
// that changed its meaning between versions or that only others have (op_*.go; recurrent.go for RNN, GRU and
// LSTM). A converter gets a node and writes its replacement. Nodes that no converter can express are reported
// all at once, by their names.
package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Opset is the version of ONNX's operators to which [ToOpset] converts models. Later ones have fewer CUDA
// kernels in ONNX Runtime, which uses a kernel only for exactly the version for which it was written.
const Opset = 17

// Oldest and Newest are the versions that [ToOpset] reads. An operator of a version between [Opset] and
// Newest means the same as at Opset, unless testdata/versions.txt lists it as changed or new: then a
// converter or a refusal handles it. A version beyond Newest may have changed any operator.
const (
	Oldest = 7
	Newest = 28
)

// A converter rewrites the nodes of an operator in models of the opsets from…to.
type converter struct {
	op       string // for a domain other than ONNX's own, prefixed with the domain and a dot
	from, to int
	apply    func(e *edit, n onnx.Node) error
}

// converters returns the table of all converters. At most one matches a node.
func converters() []converter {
	return slices.Concat(
		attention, averagePool, batchNormalization, cast, clip, col2Im, dropout, einsum, fused, gelu,
		gridSample, gru, imageScaler, lstm,
		matMulNBits, meanVarianceNormalization, mish, mod, multiHeadAttention, pad, quantizeLinear, rangeOf,
		reduce, resize, rmsNormalization, rnn, roiAlign, rotaryEmbedding, scatter,
		sequence, skipLayerNormalization, slice, softmax, spaceToDepth, split, squeeze, swish, topK,
		upsample,
	)
}

// newer are the operators that were introduced after opset 17 and that no converter expresses.
var newer = []string{
	"AffineGrid", "BitCast", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CausalConvWithState",
	"CenterCropPad", "CumProd", "DeformConv", "GroupNormalization", "ImageDecoder", "LinearAttention",
	"RegexFullMatch", "StringConcat", "StringSplit", "TensorScatter",
}

// ToOpset converts a model's operators to version [Opset], and reports whether it added values, whose types
// aren't known yet. types has the known types of values, with [onnx.Free] for an unknown dimension; some
// operators can be converted only if their types are known. The error names every node that can't be
// converted.
func ToOpset(m *onnx.Model, types map[string]onnx.Type) (anew bool, err error) {
	version := m.Opset()
	if version < Oldest || version > Newest {
		return false, fmt.Errorf("the model uses opset %d: the meaning of operators is known from %d to %d",
			version, Oldest, Newest)
	}
	e := &edit{m: m, version: version, types: types, table: map[string][]converter{},
		sequences: map[string][]string{}}
	for _, p := range converters() {
		e.table[p.op] = append(e.table[p.op], p)
	}
	e.graph(m.Proto.Graph)
	if e.refused != nil {
		return false, fmt.Errorf("the model can't be written in ONNX's operators of opset %d: %s", Opset,
			list(e.clauses(), "; "))
	}
	m.Proto.OpsetImport = []*onnxpb.OperatorSetIdProto{{Version: Opset}}
	m.Proto.IrVersion = 8 // the format's version at opset 17
	m.Proto.Functions = nil
	return e.anew, nil
}

// list joins the first elements of a long list.
func list(all []string, separator string) string {
	const shown = 8
	if n := len(all) - shown; n > 0 {
		return fmt.Sprintf("%s%sand %d more", strings.Join(all[:shown], separator), separator, n)
	}
	return strings.Join(all, separator)
}

// A refusal is the nodes that can't be converted for one reason.
type refusal struct {
	why   string
	nodes []string
}

func (e *edit) refuse(n onnx.Node, why error) {
	i := slices.IndexFunc(e.refused, func(r refusal) bool { return r.why == why.Error() })
	if i < 0 {
		i = len(e.refused)
		e.refused = append(e.refused, refusal{why: why.Error()})
	}
	e.refused[i].nodes = append(e.refused[i].nodes, n.Label())
}

// clauses returns the clauses of the error about the refused nodes.
func (e *edit) clauses() []string {
	var out []string
	for _, r := range e.refused {
		out = append(out, fmt.Sprintf("node %s: %s", onnx.Some(r.nodes), r.why))
	}
	return out
}

// An edit is a model that is being converted.
type edit struct {
	m       *onnx.Model
	version int
	types   map[string]onnx.Type
	table   map[string][]converter
	anew    bool // whether values were added
	made    int  // how many elements the created matrices have

	sequences map[string][]string // the values in each sequence, by the sequence's name

	scope   []*onnxpb.GraphProto // the current graph and the graphs around it
	nodes   []*onnxpb.NodeProto  // the converted nodes so far
	refused []refusal
}

// graph rewrites the nodes of g and of the graphs inside them.
func (e *edit) graph(g *onnxpb.GraphProto) {
	outer := e.nodes
	e.nodes = nil
	e.scope = append(e.scope, g)
	for _, proto := range g.Node {
		n := onnx.Node{NodeProto: proto}
		for _, inner := range onnx.Bodies(proto) {
			e.graph(inner)
		}
		if err := e.node(n); err != nil {
			e.refuse(n, err)
		}
	}
	g.Node = e.nodes
	e.nodes = outer
	e.scope = e.scope[:len(e.scope)-1]
}

func (e *edit) node(n onnx.Node) error {
	defer n.Named()
	op := n.OpType
	if n.Domain == "ai.onnx" {
		n.Domain = ""
	}
	if n.Domain != "" {
		op = n.Domain + "." + op
	}
	if slices.Contains(newer, op) {
		return fmt.Errorf("opset %d has no such operator", Opset)
	}
	for _, p := range e.table[op] {
		if p.from <= e.version && e.version <= p.to {
			if n.In(0) == "" || len(n.Output) == 0 {
				return fmt.Errorf("it has no input or no output")
			}
			return p.apply(e, n)
		}
	}
	if n.Domain != "" {
		return foreign(n)
	}
	e.keep(n)
	return nil
}

// foreign returns why a node of a domain other than ONNX's own can't be converted, and a remedy.
func foreign(n onnx.Node) error {
	switch {
	case n.Quantises():
		return errors.New(onnx.Quantised)
	case n.Domain == "com.microsoft.nchwc":
		return errors.New("ONNX Runtime laid it out for one processor: take the file that it was made " +
			"from, or have it saved at the optimisation level extended")
	}
	return fmt.Errorf("its operator is of %s, not one of ONNX's own", n.Domain)
}

// keep keeps a node in its present form.
func (e *edit) keep(n onnx.Node) { e.nodes = append(e.nodes, n.NodeProto) }

// op writes a node and returns the name of its output.
func (e *edit) op(hint, op string, in []string, attrs ...onnx.Attr) string {
	out := e.value(hint, op)
	e.to(out, op, in, attrs...)
	return out
}

// value returns a name for an output of a new node.
func (e *edit) value(hint, op string) string {
	e.anew = true
	return e.m.Fresh(hint + "/" + op)
}

// to writes a node whose output is called out.
func (e *edit) to(out, op string, in []string, attrs ...onnx.Attr) {
	e.nodes = append(e.nodes, onnx.NewNode(out, op, in, []string{out}, attrs...))
}

// ints adds a constant and returns its name.
func (e *edit) ints(hint string, v ...int) string {
	return e.weight(onnx.IntTensor(e.m.Fresh(hint), long(v), len(v)))
}

// scalar adds a constant of rank 0 and returns its name.
func (e *edit) scalar(hint string, v float32) string {
	return e.weight(onnx.FloatTensor(e.m.Fresh(hint), []float32{v}))
}

// mostNumbers bounds the elements of all matrices that are made for nodes. A file may claim any size of a
// value.
const mostNumbers = 40 << 20

// matrix allocates the elements of a constant.
func (e *edit) matrix(rows, columns int) ([]float32, error) {
	if rows > (mostNumbers-e.made)/max(columns, 1) {
		return nil, fmt.Errorf("a constant of %d times %d numbers takes too much memory", rows, columns)
	}
	e.made += rows * columns
	return make([]float32, rows*columns), nil
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
	values, err := onnx.Int64s(t)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(values))
	for i, v := range values {
		out[i] = int(v)
	}
	return out, nil
}

// constant returns a weight or the value of a Constant node, nil for anything else.
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
	if t := e.constant(name); t != nil {
		return len(t.Dims), nil
	}
	t, ok := e.types[name]
	if !ok {
		return 0, fmt.Errorf("the shape of %q isn't known", name)
	}
	return len(t.Shape), nil
}

// fixed returns the shape of a value if all its dimensions are known.
func (e *edit) fixed(name string) ([]int, error) {
	shape := e.types[name].Shape
	if t := e.constant(name); t != nil {
		shape = onnx.ShapeOf(t)
	} else if _, ok := e.types[name]; !ok || slices.Contains(shape, onnx.Free) {
		return nil, fmt.Errorf("the shape of %q isn't known", name)
	}
	if !onnx.Possible(shape) {
		return nil, fmt.Errorf("%q has the impossible shape %v", name, shape)
	}
	return shape, nil
}

// reshape writes a change of shape and returns the name of its output.
func (e *edit) reshape(hint, in string, shape ...int) string {
	out := e.value(hint, "Reshape")
	e.reshapeTo(out, in, shape...)
	return out
}

// reshapeTo writes a change of shape whose output is called out.
func (e *edit) reshapeTo(out, in string, shape ...int) {
	e.to(out, "Reshape", []string{in, e.ints(out+"/shape", shape...)})
}

// transpose writes a permutation of axes and returns the name of its output.
func (e *edit) transpose(hint, in string, perm ...int) string {
	return e.op(hint, "Transpose", []string{in}, onnx.Attr{Name: "perm", Value: long(perm)})
}

// split writes a division of a value along an axis and returns the names of the parts.
func (e *edit) split(hint, in string, axis int, sizes ...int) []string {
	out := make([]string, len(sizes))
	for i := range out {
		out[i] = e.value(hint, "Split")
	}
	attr := onnx.Attr{Name: "axis", Value: axis}
	e.nodes = append(e.nodes,
		onnx.NewNode(out[0], "Split", []string{in, e.ints(hint+"/sizes", sizes...)}, slices.Clone(out), attr))
	return out
}

func long(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// drop removes an attribute.
func drop(n onnx.Node, name string) {
	n.Attribute = slices.DeleteFunc(n.Attribute,
		func(a *onnxpb.AttributeProto) bool { return a.Name == name })
}

func setText(n onnx.Node, name, value string) {
	drop(n, name)
	n.Attribute = append(n.Attribute,
		&onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_STRING, S: []byte(value)})
}

func setInts(n onnx.Node, name string, v []int) {
	drop(n, name)
	n.Attribute = append(n.Attribute,
		onnx.NewNode("", "", nil, nil, onnx.Attr{Name: name, Value: long(v)}).Attribute...)
}

// singleOutput reports whether no output of n except the first is asked for.
func singleOutput(n onnx.Node) bool {
	return !slices.ContainsFunc(n.Output[min(1, len(n.Output)):], func(v string) bool { return v != "" })
}

// attrToInput turns an attribute of integers into input i.
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
	n.Input = n.Input[:i]
	setInts(n, name, v)
	return nil
}
