package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// vector is how many float32 ONNX Runtime's general kernels compute at once, from an address that is a
// multiple of their size; the rest at either end is computed one by one, by other functions.
const vector = 4

// batchDependent are the operators whose kernels give bits that depend on the alignment of a number in
// memory, on the number of images, or on the number of threads. Each is rewritten with batch-invariant
// ones, unless its shape makes it invariant.
var batchDependent = map[string]func(s invariant) bool{
	"Elu":                   invariant.elu,
	"Selu":                  invariant.selu,
	"Celu":                  invariant.celu,
	"Softplus":              invariant.softplus,
	"Log":                   invariant.log,
	"Sin":                   invariant.aligned,
	"Cos":                   invariant.aligned,
	"Asin":                  invariant.aligned,
	"Acos":                  invariant.aligned,
	"Atan":                  invariant.aligned,
	"LRN":                   invariant.lrn,
	"InstanceNormalization": invariant.instanceNormalization,
	"ReduceMean":            invariant.sum,
	"ReduceSum":             invariant.sum,
}

// batchInvariant rewrites the batch-dependent operators.
func (u *unit) batchInvariant() error {
	BatchInvariant(u.graph, u.batch)
	return nil
}

// BatchInvariant rewrites the batch-dependent operators of a graph, and reports whether it has any.
func BatchInvariant(g *onnx.Graph, batch int) (rewrote bool) {
	return rewriteNodes(g, batch, func(s invariant) bool {
		rewrite := batchDependent[s.OpType]
		return rewrite != nil && rewrite(s)
	})
}

// rewriteNodes calls a function with each node of a graph that has an input of float32. It returns whether
// the function replaced any node.
func rewriteNodes(g *onnx.Graph, batch int, rewrite func(invariant) bool) (rewrote bool) {
	nodes := g.Proto.Graph.Node
	g.Proto.Graph.Node = nil
	for _, proto := range nodes {
		s := invariant{onnx.Node{NodeProto: proto}, g, g.Fragment(), batch}
		if !s.try(rewrite) {
			g.Proto.Graph.Node = append(g.Proto.Graph.Node, proto)
			continue
		}
		g.After(s.f)
		rewrote = true
	}
	return rewrote
}

// An invariant emits a batch-invariant form of a node, or one that a provider computes correctly.
type invariant struct {
	onnx.Node
	g     *onnx.Graph
	f     *onnx.Fragment
	batch int
}

// try emits another form of the node; false if it stays.
func (s invariant) try(rewrite func(invariant) bool) bool {
	defer s.Named()
	return s.g.Types[s.In(0)].Elem == onnxpb.TensorProto_FLOAT && onnx.Size(s.shape()) > 0 && rewrite(s)
}

// shape returns the shape of the node's input.
func (s invariant) shape() []int { return s.g.Shape(s.In(0)) }

// op emits a node and returns the name of its output, of the given shape.
func (s invariant) op(op string, shape []int, in []string, attrs ...onnx.Attr) string {
	v := s.f.Op(op, in, attrs...)
	s.g.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	return v
}

// each emits a node that is computed element by element.
func (s invariant) each(op string, in ...string) string { return s.op(op, s.shape(), in) }

// reshape emits a value in another shape.
func (s invariant) reshape(x string, shape []int) string {
	return s.op("Reshape", shape, []string{x, s.to(shape)})
}

// end emits the node that makes the rewritten node's output.
func (s invariant) end(op string, in ...string) bool {
	s.f.OpTo(s.Output[0], op, in)
	return true
}

// number returns the name of a constant.
func (s invariant) number(v float32) string { return s.f.Floats("number", []float32{v}) }

// to returns the name of a constant shape.
func (s invariant) to(shape []int) string {
	return s.f.Ints("shape", int64s(shape), int64(len(shape)))
}
