// Package relevance turns the graph of a model into the graph of an attribution: backwards from what is
// explained, node by node, by rules.
//
//   - An [Op] is how one ONNX operator takes part: its kind, the roles of its
//     inputs, and its vector-Jacobian product, the VJP.
//   - A [Rule] says how relevance at a node's outputs becomes relevance at its
//     inputs. It is written once for a kind of operators and reaches them only
//     through what an Op declares. The gradient is the rule that is the VJP.
//   - A [Policy] picks a rule for every node: an ordered table, first match wins,
//     so that a published recipe reads as in its paper.
//   - [Backward] walks the graph and emits nodes; ONNX Runtime runs them.
//
// The law of emitted nodes: operators of opset [Opset] that ONNX Runtime has on CPU and CUDA alike, and its
// own FusedMatMul; shapes known; the same graph and policy give the same bytes; no sum whose result depends
// on the batch (sums are products with ones).
package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Opset is the version of ONNX's operators that graphs come in and go out with.
const Opset = 17

// A Value is the name of a value in a graph; the empty one means that nothing flows there, and is never
// written as zeros.
type Value = string

// A Kind says which rules make sense for an operator.
type Kind int

const (
	Opaque     Kind = iota // nothing flows back, on purpose: Shape, ArgMax
	Move                   // copies elements: Reshape, Transpose, Concat, Slice, Pad
	Affine                 // affine in its data input: Conv, Gemm, AveragePool, BatchNormalization
	Bilinear               // a product of two data inputs: MatMul, Mul
	Sum                    // adds data inputs: Add, Sum
	Activation             // element by element: Relu, Erf, Sigmoid, Tanh
	Select                 // passes some of its inputs on: MaxPool, Max, Clip
	Joint                  // non-linear in several elements at once: Softmax, LayerNormalization, Div
)

var kindNames = [...]string{"opaque", "move", "affine", "bilinear", "sum", "activation", "select", "joint"}

func (k Kind) String() string { return kindNames[k] }

// A Role says what an input is to its operator.
type Role int

const (
	Config Role = iota // shapes, axes, bounds: no relevance flows there
	Data
	Weight
	Bias
)

// An Op is how an ONNX operator takes part in a backward pass.
type Op struct {
	Type  string // as ONNX spells it
	Kind  Kind
	Roles []Role // of the inputs; the last one stands for all that follow

	// VJP emits the vector-Jacobian product: for every input the cotangent that the cotangents dy of the
	// outputs make, Jᵀ·dy, of the input's shape; "" for inputs of role Config and where nothing flows. An
	// empty dy[i] is an output that nothing flows into.
	VJP func(b *Builder, n onnx.Node, dy []Value) []Value

	// Examples are nodes to test the operator on; see [Example].
	Examples []Example

	// Prepare, if set, is called once for every node that relevance flows through, before the walk. It may
	// make the node compute more than it did, such as the indices of a MaxPool, for VJP to read.
	Prepare func(b *Builder, n onnx.Node)
}

// Role returns the role of input i.
func (o *Op) Role(i int) Role {
	if len(o.Roles) == 0 {
		return Data
	}
	return o.Roles[min(i, len(o.Roles)-1)]
}

// An Example is a one-node graph for tests: the shapes of its inputs, drawn at random, and constants for the
// others. Data inputs whose first size is 2 are taken for batches, for a test that makes them larger and
// smaller.
type Example struct {
	Name    string
	Inputs  [][]int             // shapes; nil for one in Consts or absent
	Consts  map[int]any         // by input: int64, float32 or bool, a slice of them, or a *TensorProto
	Attrs   []onnx.Attr         // of the node
	Flow    []int               // the inputs that aren't weights; nil for those of role Data
	Outputs int                 // how many there are; 0 means 1
	Draw    func(i int) float32 // an element of a flowing input from its number; nil for noise away from zero
}

// A Rule emits what relevance at a node's outputs becomes at its inputs, as [Op.VJP] does.
type Rule func(b *Builder, op *Op, n onnx.Node, r []Value) []Value

// Gradient is the rule of plain derivatives.
func Gradient(b *Builder, op *Op, n onnx.Node, r []Value) []Value { return op.VJP(b, n, r) }

// A Policy picks the rule for each node: that of the first case that matches. A node that none matches
// follows [Gradient], and so do all nodes of the zero Policy.
type Policy struct {
	Name  string // with its parameters: policies of one name do the same
	Cases []Case

	// Grouped shows rules the operators that a model was written with, such as Linear and GELU, where
	// exporters leave several of ONNX.
	Grouped bool
	// Apart keeps each BatchNormalization a node of its own. Otherwise those behind a Conv are merged into it
	// before the walk.
	Apart bool
}

// Derivative is the policy of plain derivatives.
func Derivative() Policy { return Policy{Name: "derivative"} }

// A Case is a line of a policy.
type Case struct {
	Match func(b *Builder, op *Op, n onnx.Node) bool
	Rule  Rule
}

func (p Policy) rule(b *Builder, op *Op, n onnx.Node) Rule {
	for _, c := range p.Cases {
		if c.Match(b, op, n) {
			return c.Rule
		}
	}
	return Gradient
}

// Type matches nodes by operator.
func Type(types ...string) func(*Builder, *Op, onnx.Node) bool {
	return func(_ *Builder, _ *Op, n onnx.Node) bool { return slices.Contains(types, n.OpType) }
}

// OfKind matches nodes by the kind of their operator.
func OfKind(kinds ...Kind) func(*Builder, *Op, onnx.Node) bool {
	return func(_ *Builder, op *Op, _ onnx.Node) bool { return slices.Contains(kinds, op.Kind) }
}

// An UnsupportedError lists every node that relevance would have to flow through and whose operator nobody
// has taught us.
type UnsupportedError struct {
	Nodes     []string
	Quantised bool // one of them rounds activations or computes with these
}

func (e *UnsupportedError) Error() string {
	text := "no gradient is known for " + onnx.Some(e.Nodes)
	if e.Quantised {
		text += ": " + onnx.Quantised
	}
	return text
}

// unsupported returns the error of some nodes, of which there is at least one.
func unsupported(nodes []onnx.Node) error {
	e := &UnsupportedError{}
	for _, n := range nodes {
		e.Nodes = append(e.Nodes, n.Label())
		e.Quantised = e.Quantised || n.Quantises()
	}
	return e
}
