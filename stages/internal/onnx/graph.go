package onnx

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Type is the element type and the shape of a value.
type Type struct {
	Elem  onnxpb.TensorProto_DataType
	Shape []int // every dimension is known
}

// A Graph is a model in which every value has a known type: passes see numbers where the model may have
// names of dimensions.
type Graph struct {
	*Model
	Types map[string]Type // of every value: inputs, weights, outputs of nodes
	// Root is the value that is explained in the input's place, "" for the input itself: a text's embedding.
	// What doesn't depend on it, such as masks, counts as constant.
	Root string
	// Tokens are how the model's tokens lie in the image, if that is stated.
	Tokens Tokens

	weights map[string]*onnxpb.TensorProto
}

// largest bounds the number of elements of a value of a graph.
const largest = 1 << 34

// NewGraph returns a graph of m. types has the types of its inputs and of its nodes' outputs; the types of
// weights are read from the model. The error names the node whose output no memory can hold.
func NewGraph(m *Model, types map[string]Type) (*Graph, error) {
	g := &Graph{Model: m, Types: types, weights: map[string]*onnxpb.TensorProto{}}
	for _, t := range m.Proto.Graph.Initializer {
		g.weights[t.Name] = t
		g.Types[t.Name] = typeOf(t)
	}
	for _, v := range m.Inputs() {
		if _, ok := g.Types[v.Name]; !ok {
			return nil, fmt.Errorf("nothing is known of the input %q", v.Name)
		}
	}
	for _, n := range m.Proto.Graph.Node {
		for _, v := range n.Output {
			if shape := g.Shape(v); !Possible(shape) {
				return nil, fmt.Errorf("node %s makes a value of the impossible shape %v", Node{n}.Label(),
					shape)
			}
		}
	}
	return g, nil
}

// Possible reports whether a value can have a shape, every dimension of which is known.
func Possible(shape []int) bool {
	n := 1
	for _, d := range shape {
		if d < 0 || d > largest/max(n, 1) {
			return false
		}
		n *= d
	}
	return true
}

func typeOf(t *onnxpb.TensorProto) Type {
	return Type{onnxpb.TensorProto_DataType(t.DataType), ShapeOf(t)}
}

// ShapeOf returns the declared shape of a constant.
func ShapeOf(t *onnxpb.TensorProto) []int {
	shape := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		shape[i] = int(d)
	}
	return shape
}

// Shape returns the shape of a value; nil if it is unknown, as for a scalar.
func (g *Graph) Shape(name string) []int { return g.Types[name].Shape }

// Weight returns the constant called name, or nil.
func (g *Graph) Weight(name string) *onnxpb.TensorProto { return g.weights[name] }

// AddWeight adds a constant.
func (g *Graph) AddWeight(t *onnxpb.TensorProto) {
	g.Proto.Graph.Initializer = append(g.Proto.Graph.Initializer, t)
	g.weights[t.Name] = t
	g.Types[t.Name] = typeOf(t)
}

// Int64s returns the integers of a constant, false if name isn't one.
func (g *Graph) Int64s(name string) ([]int64, bool) {
	t := g.weights[name]
	if t == nil {
		return nil, false
	}
	v, err := Int64s(t)
	return v, err == nil
}

// Float32s returns the numbers of a float constant, false if name isn't one.
func (g *Graph) Float32s(name string) ([]float32, bool) {
	t := g.weights[name]
	if t == nil {
		return nil, false
	}
	v, err := Float32s(t)
	return v, err == nil
}

// A Node is a node of a graph, with access to its attributes.
type Node struct{ *onnxpb.NodeProto }

// In returns input i, "" if the node doesn't have it.
func (n Node) In(i int) string {
	if i < len(n.Input) {
		return n.Input[i]
	}
	return ""
}

// Label names the node in messages.
func (n Node) Label() string {
	switch {
	case n.Name != "":
		return fmt.Sprintf("%s %q", n.OpType, n.Name)
	case len(n.Output) == 0:
		return n.OpType + " without outputs"
	}
	return fmt.Sprintf("%s of %q", n.OpType, n.Output[0])
}

func (n Node) attr(name string) *onnxpb.AttributeProto {
	i := slices.IndexFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return n.Attribute[i]
}

// Has reports whether the node states an attribute.
func (n Node) Has(name string) bool { return n.attr(name) != nil }

// Int returns an integer attribute, or its default.
func (n Node) Int(name string, unstated int) int {
	if a := n.attr(name); a != nil {
		return int(a.GetI())
	}
	return unstated
}

// Float returns a float attribute, or its default.
func (n Node) Float(name string, unstated float32) float32 {
	if a := n.attr(name); a != nil {
		return a.GetF()
	}
	return unstated
}

// Text returns a string attribute, or its default.
func (n Node) Text(name, unstated string) string {
	if a := n.attr(name); a != nil {
		return string(a.GetS())
	}
	return unstated
}

// Texts returns a list of strings, nil when unstated.
func (n Node) Texts(name string) []string {
	a := n.attr(name)
	if a == nil {
		return nil
	}
	var out []string
	for _, s := range a.Strings {
		out = append(out, string(s))
	}
	return out
}

// Ints returns a list attribute, nil when unstated.
func (n Node) Ints(name string) []int {
	a := n.attr(name)
	if a == nil {
		return nil
	}
	out := make([]int, len(a.Ints))
	for i, v := range a.Ints {
		out[i] = int(v)
	}
	return out
}

// Floats returns a list of floats, nil when unstated.
func (n Node) Floats(name string) []float32 {
	if a := n.attr(name); a != nil {
		return a.Floats
	}
	return nil
}

// NewNode returns a node of ONNX's own operators.
func NewNode(name, op string, in, out []string, attrs ...Attr) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: op, Name: name, Input: in, Output: out}
	for _, a := range attrs {
		n.Attribute = append(n.Attribute, a.proto())
	}
	return n
}

// Clone returns a graph that can be changed without changing g. The two share the weights, which must not be
// changed in place.
func (g *Graph) Clone() *Graph {
	p := &onnxpb.ModelProto{
		IrVersion: g.Proto.IrVersion, OpsetImport: g.Proto.OpsetImport,
		Graph: &onnxpb.GraphProto{
			Name:        g.Proto.Graph.Name,
			Initializer: slices.Clone(g.Proto.Graph.Initializer),
			Input:       slices.Clone(g.Proto.Graph.Input),
			Output:      slices.Clone(g.Proto.Graph.Output),
		},
	}
	for _, n := range g.Proto.Graph.Node {
		p.Graph.Node = append(p.Graph.Node, proto.Clone(n).(*onnxpb.NodeProto))
	}
	return &Graph{Model: &Model{Proto: p, Computed: maps.Clone(g.Computed)}, Types: maps.Clone(g.Types),
		Root: g.Root, Tokens: g.Tokens, weights: maps.Clone(g.weights)}
}

// ContractedAxis returns the axis of a MatMul's or Gemm's second operand, a matrix, over which it sums.
func (n Node) ContractedAxis() int {
	if n.Int("transB", 0) != 0 {
		return 1
	}
	return 0
}

// Size returns the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
