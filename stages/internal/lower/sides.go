package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// sides moves the step from one output to its two sides, z × [−1, 1], into the weights of the linear layer
// that computes z: the graph becomes that of a model with a row of weights for each class. Rules of
// relevance that treat positive and negative weights differently need that; a derivative is the same. Sides
// of a probability, p × [−1, 1] + [1, 0], become sides of its logit first. If z isn't computed by linear
// layers, the step stays.
func (u *unit) sides() error {
	if !u.Sides {
		return nil
	}
	s := &siding{Graph: u.graph, makers: map[string]*onnxpb.NodeProto{}, keep: map[string]bool{}}
	for _, q := range u.questions() {
		s.keep[q.Layer] = true
	}
	for _, n := range u.graph.Proto.Graph.Node {
		for _, v := range n.Output {
			s.makers[v] = n
		}
	}
	mul, add := s.step(u.Output)
	if add != nil {
		mul = s.ofLogit(mul, add)
	}
	if mul != nil {
		s.move(mul)
	}
	u.graph.Prune()
	return nil
}

// A siding is one run of the pass.
type siding struct {
	*onnx.Graph
	makers map[string]*onnxpb.NodeProto
	keep   map[string]bool // values of layers, which questions name
	nodes  []*onnxpb.NodeProto
}

// The constants of a step to two sides.
var (
	signs = []float32{-1, 1}
	whole = []float32{1, 0}
)

// step returns the step to two sides that makes v: a Mul, followed by an Add for probabilities.
func (s *siding) step(v string) (mul, add *onnxpb.NodeProto) {
	for n := s.makers[v]; n != nil && !s.keep[n.Output[0]]; n = s.makers[n.Input[0]] {
		switch n.OpType {
		case "Mul":
			if x, _ := s.with(n, signs); 2*onnx.Size(s.Shape(x)) == onnx.Size(s.Shape(n.Output[0])) {
				return n, add
			}
			return nil, nil
		case "Add":
			x, _ := s.with(n, whole)
			if n = s.makers[x]; n == nil || n.OpType != "Mul" {
				return nil, nil
			}
			if mul, _ := s.step(x); mul == n {
				return mul, s.makers[v]
			}
			return nil, nil
		case "Flatten", "GlobalAveragePool", "Identity", "Reshape", "Squeeze", "Unsqueeze":
			v = n.Input[0]
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// with returns the other operand of a node and the constant, if that consists of these numbers; "" for
// other nodes.
func (s *siding) with(n *onnxpb.NodeProto, numbers []float32) (x, constant string) {
	for i, v := range n.Input {
		if c, ok := s.Float32s(v); ok && slices.Equal(c, numbers) {
			return n.Input[1-i], v
		}
	}
	return "", ""
}

// ofLogit replaces the sides of a probability that a Sigmoid computes by the Sigmoid of the logit's sides,
// and returns the step to these; nil if no Sigmoid computes it.
func (s *siding) ofLogit(mul, add *onnxpb.NodeProto) *onnxpb.NodeProto {
	x, constant := s.with(mul, signs)
	sigmoid := s.makers[x]
	for sigmoid != nil && slices.Contains(sameNumbers, sigmoid.OpType) {
		sigmoid = s.makers[sigmoid.Input[0]]
	}
	if sigmoid == nil || sigmoid.OpType != "Sigmoid" || s.keep[sigmoid.Output[0]] {
		return nil
	}
	out := add.Output[0]
	z := s.add("Reshape", []string{sigmoid.Input[0], s.ints(s.Shape(x))}, s.Shape(x))
	both := s.add("Mul", []string{z, constant}, s.Shape(out))
	s.add("Sigmoid", []string{both}, s.Shape(out))
	s.replace(add)
	return s.makers[both]
}

// move moves a step into the weights of the layers that compute its input.
func (s *siding) move(mul *onnxpb.NodeProto) {
	defer onnx.Node{NodeProto: mul}.Named()
	x, _ := s.with(mul, signs)
	in, out := s.Shape(x), s.Shape(mul.Output[0])
	inner := 1
	for axis, d := range out {
		if k := axis - len(out) + len(in); d == 2 && (k < 0 || in[k] == 1) {
			inner = onnx.Size(out[axis+1:])
			break
		}
	}
	if v := s.of(x, inner); v != "" {
		s.shaped(v, out)
		s.replace(mul)
	}
	s.nodes = nil
}

// replace replaces a node by the nodes made so far. The last of these makes the node's output.
func (s *siding) replace(n *onnxpb.NodeProto) {
	out := n.Output[0]
	s.nodes[len(s.nodes)-1].Output[0] = out
	s.makers[out] = s.nodes[len(s.nodes)-1]
	at := slices.Index(s.Proto.Graph.Node, n)
	s.Proto.Graph.Node = slices.Replace(s.Proto.Graph.Node, at, at+1, s.nodes...)
	s.nodes = nil
}

// add makes a node, and returns its output.
func (s *siding) add(op string, in []string, shape []int, attrs ...*onnxpb.AttributeProto) string {
	out := s.Fresh("sides/" + op)
	s.Types[out] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: slices.Clone(shape)}
	n := onnx.NewNode(out, op, in, []string{out})
	n.Attribute = attrs
	s.nodes, s.makers[out] = append(s.nodes, n), n
	return out
}

func (s *siding) ints(v []int) string {
	name := s.Fresh("sides/shape")
	s.AddWeight(onnx.IntTensor(name, v, len(v)))
	return name
}

// shaped returns v in a shape.
func (s *siding) shaped(v string, shape []int) string {
	if slices.Equal(s.Shape(v), shape) {
		return v
	}
	return s.add("Reshape", []string{v, s.ints(shape)}, shape)
}

// sameNumbers are the operators that only change the shape of their input.
var sameNumbers = []string{"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}

// of makes the nodes that compute both sides of v, and returns their output: −v and v, each of inner
// numbers, for each row of v. It returns "" if v isn't computed by linear layers with constant weights.
func (s *siding) of(v string, inner int) string {
	n := onnx.Node{NodeProto: s.makers[v]}
	if n.NodeProto == nil || s.keep[v] {
		return ""
	}
	defer n.Named()
	switch n.OpType {
	case "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze": // sameNumbers
		return s.of(n.In(0), inner)
	case "Gemm", "MatMul", "Conv":
		return s.layer(n, inner)
	case "Neg":
		if x := s.of(n.In(0), inner); x != "" {
			return s.add(n.OpType, []string{x}, s.Shape(x))
		}
	case "Add", "Sub", "Sum", "Mean":
		return s.sum(n, inner)
	case "Mul", "Div":
		return s.scaled(n, inner)
	case "GlobalAveragePool", "AveragePool", "ReduceMean":
		return s.pooled(n, inner)
	}
	return ""
}

// scaled returns both sides of a product or quotient with a single constant.
func (s *siding) scaled(n onnx.Node, inner int) string {
	for i, c := range n.Input {
		f, ok := s.Float32s(c)
		if !ok || len(f) != 1 || i == 0 && n.OpType == "Div" {
			continue
		}
		if x := s.of(n.Input[1-i], inner); x != "" {
			in := slices.Clone(n.Input)
			in[i], in[1-i] = s.floats(c, "same", f, 1), x
			return s.add(n.OpType, in, s.Shape(x))
		}
	}
	return ""
}

// pooled returns both sides of means over the places of one channel.
func (s *siding) pooled(n onnx.Node, inner int) string {
	in, shape := s.Shape(n.In(0)), s.Shape(n.Output[0])
	whole := len(shape) == 4 || n.OpType == "ReduceMean" && len(shape) == 2
	if len(in) != 4 || in[1] != 1 || !whole || shape[0] != in[0] || shape[1] != 1 ||
		inner != onnx.Size(shape[2:]) {
		return ""
	}
	x := s.of(n.In(0), onnx.Size(in[2:]))
	if x == "" {
		return ""
	}
	x = s.shaped(x, []int{in[0], 2, in[2], in[3]})
	both := slices.Clone(shape)
	both[1] = 2
	return s.add(n.OpType, append([]string{x}, n.Input[1:]...), both, n.Attribute...)
}

// sum returns both sides of a sum, difference or mean, whose operands have equally many numbers or are one
// constant.
func (s *siding) sum(n onnx.Node, inner int) string {
	size := onnx.Size(s.Shape(n.Output[0]))
	in := slices.Clone(n.Input)
	var shape []int
	for i, v := range in {
		if s.Weight(v) != nil {
			continue
		}
		if onnx.Size(s.Shape(v)) != size {
			return ""
		}
		if in[i] = s.of(v, inner); in[i] == "" {
			return ""
		}
		if shape == nil {
			shape = []int{size / inner, 2, inner}
		}
	}
	if shape == nil {
		return ""
	}
	for i, v := range in {
		if s.Weight(v) == nil {
			continue
		}
		c, ok := s.Float32s(v)
		if !ok || len(c) != 1 {
			return ""
		}
		// A vector of weights has no Gemm; with two rows, the offset is the layer's bias.
		x := s.makers[in[len(in)-1-i]]
		if n.OpType == "Add" && x.OpType == "MatMul" && len(s.Shape(x.Input[0])) == 2 {
			x.OpType, x.Input = "Gemm", append(x.Input, s.floats(v, "bias", both(c), 2))
			return x.Output[0]
		}
		in[i] = s.floats(v, "both", both(c), 2, 1)
	}
	for i, v := range in {
		if s.Weight(v) == nil {
			in[i] = s.shaped(v, shape)
		}
	}
	return s.add(n.OpType, in, shape)
}

// layer returns both sides of the output of a linear layer with constant weights.
func (s *siding) layer(n onnx.Node, inner int) string {
	w, ok := s.Float32s(n.In(1))
	from := s.Shape(n.In(1))
	if !ok || s.Weight(n.In(0)) != nil || len(from) == 0 {
		return ""
	}
	shape := s.Shape(n.Output[0])
	axis, class, ok := classAxes(n, from, shape, inner)
	if !ok {
		return ""
	}
	weights := both(w)
	if axis > 0 {
		weights = alternating(w)
	}
	in := slices.Clone(n.Input)
	in[1] = s.floats(n.In(1), "weights", weights, twoAlong(from, axis)...)
	if n.In(2) != "" {
		bias, ok := s.Float32s(n.In(2))
		if !ok || len(bias) != 1 {
			return ""
		}
		in[2] = s.floats(n.In(2), "bias", both(bias), 2)
	}
	return s.add(n.OpType, in, twoAlong(shape, class), n.Attribute...)
}

// classAxes returns the axes of the classes of a linear layer that has one class, in its weights and in its
// output: the axis after the last where a vector of weights has none.
func classAxes(n onnx.Node, weights, out []int, inner int) (axis, class int, ok bool) {
	switch {
	case n.OpType == "Conv":
		return 0, 1, len(out) > 2 && weights[0] == 1 && inner == onnx.Size(out[2:])
	case inner != 1:
		return 0, 0, false
	case n.OpType == "Gemm" && n.Int("transB", 0) != 0:
		return 0, 1, weights[0] == 1
	case n.OpType == "Gemm":
		return 1, 1, weights[1] == 1
	case len(weights) == 1:
		return 1, len(out), true
	}
	return 1, len(out) - 1, len(weights) == 2 && weights[1] == 1
}

// twoAlong returns a shape with two numbers along an axis, which may be the one after the last.
func twoAlong(shape []int, axis int) []int {
	return slices.Replace(slices.Clone(shape), axis, min(axis+1, len(shape)), 2)
}

// alternating returns both sides of weights whose classes are the last axis.
func alternating(v []float32) []float32 {
	out := make([]float32, 0, 2*len(v))
	for _, x := range v {
		out = append(out, -x, x)
	}
	return out
}

// both returns −v followed by v.
func both(v []float32) []float32 {
	out := make([]float32, 0, 2*len(v))
	for _, x := range v {
		out = append(out, -x)
	}
	return append(out, v...)
}

// floats adds a constant derived from another one.
func (s *siding) floats(from, how string, v []float32, shape ...int) string {
	t := onnx.FloatTensor(s.Fresh("sides/"+how), v, shape...)
	s.AddWeight(t)
	s.Derive(t.Name, "sides: "+how, from)
	return t.Name
}
