// Package relevance compiles the graph of a model into the graph of an attribution: a backward pass from the
// explained value, node by node, by rules.
//
//   - An [Op] describes an ONNX operator (op_*.go, listed in ops.go): its kind, the roles of its inputs, and
//     its vector-Jacobian product, the VJP. opaque.go lists operators through which no relevance flows.
//   - A [Rule] maps the relevance of a node's outputs to that of its inputs (rule_*.go). It is written for a
//     kind of operators and uses only what an Op declares. The gradient is the rule that applies the VJP.
//   - A [Policy] selects a rule for every node: an ordered table, first match wins, that reads like the
//     published method (LRP composites: lrp.go, with their layers in lrp_layer.go; gradients with some
//     derivatives exchanged: balance.go).
//   - [Backward] walks the graph in reverse and emits nodes by a [Builder] (backward.go, builder.go); the
//     emitted nodes are optimised (peephole.go) and run by ONNX Runtime. audit.go also returns the sums of
//     relevance at every node, shares.go what constants have of it, place by place, and reference.go names
//     values at a second input, for rules that compare two.
//
// Emitted nodes satisfy: they are operators of opset [Opset], or ONNX Runtime's FusedMatMul, for which the
// device's provider has a kernel ([Without] says which it lacks); all shapes are known; the same graph,
// policy and [Without] give the same bytes; no sum depends on the batch (sums are products with ones).
//
// What operators and rules emit with: axes.go reads the axes of a node, window.go the geometry of a Conv or
// a pool, builder_moves.go moves elements, copy.go emits a node again with other operands, conv_adjoint.go
// has the adjoint of a Conv, and first_largest.go finds the largest element of a window. The examples in the
// files of operators, on which all laws are tested, are drawn by examples.go.
//
// What rules ask about a model, all found in its graph, without names: position.go has the nodes between
// two values. group.go finds operators that exporters write as several nodes, linear layers
// (group_linear.go), element-wise functions (group_elementwise.go) and pairs of quantisation
// (group_fakequantize.go). gate.go separates gates from gated
// values; nonnegative.go finds values that can't be negative, at_zero.go
// functions that are 0 for 0, and batch_axis.go the axis of the images.
//
// What methods ask about a model: layers.go chooses the middle and the final layer, by the values that have
// spatial positions (layers_grid.go). channel_axis.go finds the channels of a value, and the grid of its
// tokens, token_order.go their places in the image, and attention.go the attention of a transformer, whose
// head head.go finds. family.go finds the family of an architecture.
package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Opset is the version of ONNX's operators of input and output graphs.
const Opset = 17

// A Value is the name of a value in a graph; "" means no relevance, and is never materialised as zeros.
type Value = string

// A Kind classifies operators by the rules that apply to them.
type Kind int

const (
	Opaque     Kind = iota // no derivative, by design: Shape, ArgMax
	Move                   // copies elements: Reshape, Transpose, Concat, Slice, Pad
	Affine                 // affine in its data input: Conv, Gemm, AveragePool, BatchNormalization
	Bilinear               // a product of two data inputs: MatMul, Mul
	Sum                    // adds data inputs: Add, Sum
	Activation             // element-wise: Relu, Erf, Sigmoid, Tanh
	Select                 // selects among its inputs: MaxPool, Max, Clip
	Joint                  // non-linear in several elements: Softmax, LayerNormalization, Div
)

var kindNames = [...]string{"opaque", "move", "affine", "bilinear", "sum", "activation", "select", "joint"}

func (k Kind) String() string { return kindNames[k] }

// A Role is the role of an input of an operator.
type Role int

const (
	Config Role = iota // shapes, axes, bounds: no relevance
	Data
	Weight
	Bias
)

// An Op describes how an ONNX operator takes part in a backward pass.
type Op struct {
	Type  string // ONNX's name
	Kind  Kind
	Roles []Role // of the inputs; the last one applies to all that follow

	// VJP emits the vector-Jacobian product: for every input its cotangent Jᵀ·dy, of the input's shape, given
	// the cotangents dy of the outputs; "" for inputs of role Config and for zero. An empty dy[i] is a zero
	// cotangent.
	VJP func(b *Builder, n onnx.Node, dy []Value) []Value

	// Examples are nodes to test the operator on, see [Example].
	Examples []Example

	// Prepare, if set, is called once for every node on the path, before the walk. It may make the node
	// compute additional outputs that VJP reads, such as the indices of a MaxPool.
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
// others. Data inputs whose first size is 2 are batches, which a test resizes.
type Example struct {
	Name    string
	Inputs  [][]int             // shapes; nil if in Consts or absent
	Consts  map[int]any         // by input: int64, float32 or bool, a slice of them, or a *TensorProto
	Attrs   []onnx.Attr         // of the node
	Flow    []int               // the inputs that aren't weights; nil: those of role Data
	Outputs int                 // number of outputs; 0 means 1
	Draw    func(i int) float32 // element i of an input; nil: noise away from zero
}

// A Rule emits the relevance of a node's inputs given that of its outputs, as [Op.VJP] does.
type Rule func(b *Builder, op *Op, n onnx.Node, r []Value) []Value

// Gradient is the rule of plain derivatives.
func Gradient(b *Builder, op *Op, n onnx.Node, r []Value) []Value { return op.VJP(b, n, r) }

// A Policy selects the rule for each node: that of the first matching case. Nodes without a matching case,
// and all nodes of the zero Policy, use [Gradient].
type Policy struct {
	Name  string // includes the parameters: equal names, equal policies
	Cases []Case

	// Grouped lets rules see the operators of the original model, such as Linear and GELU, which exporters
	// write as several nodes.
	Grouped bool
	// Apart keeps each BatchNormalization as a node. Otherwise it is folded into a Conv before it.
	Apart bool
	// Slopes means that derivatives are propagated, as by the zero Policy, of a net that is linear in some
	// operators: values times them are relevance.
	Slopes bool
	// StraightThrough gives pairs of QuantizeLinear and DequantizeLinear, which have no derivative, that of
	// their bounds.
	StraightThrough bool
	// Shares, if set, has [Without.BackwardWithShares] return the shares of constants.
	Shares *Scaling
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

// An UnsupportedError lists all nodes on the path whose operator has no registered Op.
type UnsupportedError struct {
	Nodes     []string
	Quantised bool // one of them quantises activations or computes with quantised ones
	Pairs     bool // all of them are QuantizeLinear and DequantizeLinear
}

func (e *UnsupportedError) Error() string {
	text := "no gradient is known for " + onnx.Some(e.Nodes)
	if e.Quantised {
		text += ": " + onnx.Quantised
	}
	if e.Pairs {
		text += "; or, for gradients, backward: {quantize: straight-through}"
	}
	return text
}

// unsupported returns the error for one or more nodes.
func unsupported(nodes []onnx.Node) error {
	e := &UnsupportedError{Pairs: true}
	for _, n := range nodes {
		e.Pairs = e.Pairs && (n.OpType == "QuantizeLinear" || n.OpType == "DequantizeLinear")
		e.Nodes = append(e.Nodes, n.Label())
		e.Quantised = e.Quantised || n.Quantises()
	}
	return e
}
