package program

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// vector is how many float32 ONNX Runtime's general kernels take at once, from an
// address that is a multiple of that; what is left at either end they take one by one,
// by other functions.
const vector = 4

// unsteady are the operators whose kernels give bits that hang on where in memory a
// number lies, on how many images there are, or on how many threads share the work.
// Each is written with others whose bits don't, or stays as it is where that's no matter.
var unsteady = map[string]func(s steadier) bool{
	"Elu":                   steadier.elu,
	"Selu":                  steadier.selu,
	"Celu":                  steadier.celu,
	"Softplus":              steadier.softplus,
	"Log":                   steadier.log,
	"Sin":                   steadier.aligned,
	"Cos":                   steadier.aligned,
	"Asin":                  steadier.aligned,
	"Acos":                  steadier.aligned,
	"Atan":                  steadier.aligned,
	"LRN":                   steadier.lrn,
	"InstanceNormalization": steadier.instanceNormalization,
	"ReduceMean":            steadier.sum,
	"ReduceSum":             steadier.sum,
}

// steady writes the unsteady operators of a graph with others, and reports whether it has
// any.
func steady(g *onnx.Graph, batch int) (wrote bool) {
	nodes := g.Proto.Graph.Node
	g.Proto.Graph.Node = nil
	for _, proto := range nodes {
		s := steadier{onnx.Node{NodeProto: proto}, g, g.Fragment(), batch}
		if !s.write() {
			g.Proto.Graph.Node = append(g.Proto.Graph.Node, proto)
			continue
		}
		g.After(s.f)
		wrote = true
	}
	return wrote
}

// A steadier emits what is in the place of a node.
type steadier struct {
	onnx.Node
	g     *onnx.Graph
	f     *onnx.Fragment
	batch int
}

// write emits what is in the place of the node; false if it stays.
func (s steadier) write() bool {
	defer s.Named()
	write := unsteady[s.OpType]
	return write != nil && s.g.Types[s.In(0)].Elem == onnxpb.TensorProto_FLOAT && size(s.shape()) > 0 && write(s)
}

// shape returns the shape of what the node takes.
func (s steadier) shape() []int { return s.g.Shape(s.In(0)) }

// op emits a node that makes a value of a shape, and returns the value's name.
func (s steadier) op(op string, shape []int, in []string, attrs ...onnx.Attr) string {
	v := s.f.Op(op, in, attrs...)
	s.g.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	return v
}

// each emits a node that makes one number of each.
func (s steadier) each(op string, in ...string) string { return s.op(op, s.shape(), in) }

// reshape emits a value in another shape.
func (s steadier) reshape(x string, shape []int) string {
	return s.op("Reshape", shape, []string{x, s.to(shape)})
}

// end emits the node that makes what the node made.
func (s steadier) end(op string, in ...string) bool {
	s.f.OpTo(s.Output[0], op, in)
	return true
}

// number returns the name of a constant.
func (s steadier) number(v float32) string { return s.f.Floats("number", []float32{v}) }

// to returns the name of a constant shape.
func (s steadier) to(shape []int) string {
	v := make([]int64, len(shape))
	for i, d := range shape {
		v[i] = int64(d)
	}
	return s.f.Ints("shape", v, int64(len(v)))
}
