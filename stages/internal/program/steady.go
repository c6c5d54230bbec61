package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// vector is how many float32 ONNX Runtime's general kernels take at once, from an
// address that is a multiple of that; what is left at either end they take one by one,
// by other functions.
const vector = 4

// settled are the operators whose kernels give bits that hang on where in memory a
// number lies, on how many images there are, or on how many threads share the work.
// Each is written with others whose bits don't, or stays as it is where that's no matter.
var settled = map[string]func(s settling) bool{
	"Elu":        settling.elu,
	"Selu":       settling.selu,
	"Celu":       settling.celu,
	"Softplus":   settling.softplus,
	"Mish":       settling.mish,
	"Log":        settling.log,
	"Sin":        settling.aligned,
	"Cos":        settling.aligned,
	"LRN":        settling.lrn,
	"ReduceMean": settling.sum,
	"ReduceSum":  settling.sum,
}

// steady writes the settled operators of a graph in single precision with others.
func steady(g *onnx.Graph, batch int) {
	nodes := g.Proto.Graph.Node
	g.Proto.Graph.Node = nil
	for _, proto := range nodes {
		s := settling{onnx.Node{NodeProto: proto}, g, g.Fragment(), batch}
		if !s.settle() {
			g.Proto.Graph.Node = append(g.Proto.Graph.Node, proto)
			continue
		}
		g.After(s.f)
	}
}

// steady does the same to a file's own model, as far as that is in single precision. What
// stands in subgraphs and functions stays, and so does all of a model whose types aren't
// found out: only last bits hang on it.
func (n *Net) steady(m *onnx.Model, batch int) (err error) {
	defer onnx.Sound(&err)
	if !slices.ContainsFunc(m.Proto.Graph.Node, func(n *onnxpb.NodeProto) bool { return settled[n.OpType] != nil && standard(n) }) {
		return nil
	}
	was := m.Proto.Graph.Input
	if i := slices.IndexFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == n.Input }); i < 0 || m.Inputs()[i].Elem != onnxpb.TensorProto_FLOAT {
		return nil
	}
	m.SetInputs(onnx.Value{Name: n.Input, Elem: onnxpb.TensorProto_FLOAT, Shape: n.inputShape(batch), Known: true})
	defer func() { m.Proto.Graph.Input = was }()
	m.ForgetShapes()
	constants(m)
	types, err := n.infer(m, batch)
	if err != nil {
		return nil
	}
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		return nil
	}
	steady(g, batch)
	return nil
}

// constants makes weights of what a model's Constant nodes hold.
func constants(m *onnx.Model) {
	g := m.Proto.Graph
	g.Node = slices.DeleteFunc(g.Node, func(n *onnxpb.NodeProto) bool {
		if n.OpType != "Constant" || !standard(n) || len(n.Output) != 1 || len(n.Attribute) != 1 || n.Attribute[0].T == nil {
			return false
		}
		t := n.Attribute[0].T
		t.Name = n.Output[0]
		g.Initializer = append(g.Initializer, t)
		return true
	})
}

// standard reports whether a node is of an operator of ONNX itself.
func standard(n *onnxpb.NodeProto) bool { return n.Domain == "" || n.Domain == "ai.onnx" }

// A settling emits what is in the place of a node.
type settling struct {
	onnx.Node
	g     *onnx.Graph
	f     *onnx.Fragment
	batch int
}

// settle emits what is in the place of the node; false if it stays.
func (s settling) settle() bool {
	defer s.Named()
	write := settled[s.OpType]
	return write != nil && standard(s.NodeProto) && s.g.Types[s.In(0)].Elem == onnxpb.TensorProto_FLOAT && size(s.shape()) > 0 && write(s)
}

// shape returns the shape of what the node takes.
func (s settling) shape() []int { return s.g.Shape(s.In(0)) }

// op emits a node that makes a value of a shape, and returns the value's name.
func (s settling) op(op string, shape []int, in ...string) string {
	v := s.f.Op(op, in)
	s.g.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	return v
}

// each emits a node that makes one number of each.
func (s settling) each(op string, in ...string) string { return s.op(op, s.shape(), in...) }

// end emits the node that makes what the settled node made.
func (s settling) end(op string, in ...string) bool {
	s.f.OpTo(s.Output[0], op, in)
	return true
}

// number returns the name of a constant.
func (s settling) number(v float32) string { return s.f.Floats("number", []float32{v}) }

// to returns the name of a constant shape.
func (s settling) to(shape []int) string {
	v := make([]int64, len(shape))
	for i, d := range shape {
		v[i] = int64(d)
	}
	return s.f.Ints("shape", v, int64(len(v)))
}
