package lower

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// sinkGather sinks Gather towards its producers so that only selected slices are computed: a vision
// transformer's answer reads only the class token, so after the last attention the other tokens need no
// values, nor, in the backward pass, the zeros that they would get. A Gather moves before nodes that treat
// each slice alike: products with constants over another axis, normalisations, elementwise functions. That
// changes no bits, since none of these reads several slices. Values of layers stay whole.
func (u *unit) sinkGather() error {
	s := sinking{Graph: u.graph, needs: map[string]*selection{}, sunk: map[string]sunk{}}
	for _, q := range u.questions() {
		s.needs[q.Layer] = nil
	}
	for _, v := range u.graph.Outputs() {
		s.needs[v.Name] = nil
	}
	for _, proto := range slices.Backward(u.graph.Proto.Graph.Node) {
		s.visit(onnx.Node{NodeProto: proto})
	}
	s.apply()
	return nil
}

// maxSlices bounds the slices that are counted one by one: those of all images of a batch.
const maxSlices = 1 << 16

// A selection is some slices along an axis, by their numbers.
type selection struct {
	axis int
	at   []int
}

func (p selection) equal(q selection) bool { return p.axis == q.axis && slices.Equal(p.at, q.at) }

// A sinking is one run of the pass.
type sinking struct {
	*onnx.Graph
	needs map[string]*selection // by value: the slices that its readers need; nil is all
	sunk  map[string]sunk       // by value of which only a selection is computed
}

// A sunk is the computed selection of a value, and the selections that it needs of its node's inputs.
type sunk struct {
	selection
	inputs []*selection
}

// need records the slices of v that one more reader needs.
func (s *sinking) need(v string, p *selection) {
	if other, ok := s.needs[v]; ok && (p == nil || other == nil || !p.equal(*other)) {
		p = nil
	}
	s.needs[v] = p
}

// visit records the slices that n needs of its inputs, given the slices that are needed of its output.
func (s *sinking) visit(n onnx.Node) {
	defer n.Named()
	if p, ok := s.selects(n); ok {
		s.need(n.Input[0], &p)
		return
	}
	needs := make([]*selection, len(n.Input))
	if p := s.needs[n.Output[0]]; p != nil && len(n.Output) == 1 {
		if inputs, ok := s.through(n, *p); ok && s.exist(n, inputs) {
			s.sunk[n.Output[0]] = sunk{*p, inputs}
			needs = inputs
		}
	}
	for i, v := range n.Input {
		if s.Weight(v) == nil {
			s.need(v, needs[i])
		}
	}
	for _, v := range onnx.Taken(n.NodeProto) {
		if !slices.Contains(n.Input, v) {
			s.need(v, nil)
		}
	}
}

// selects returns the slices that a node selects, false if it isn't a selection.
func (s *sinking) selects(n onnx.Node) (selection, bool) {
	if n.OpType != "Gather" {
		return selection{}, false
	}
	shape := s.Shape(n.In(0))
	indices, ok := s.Int64s(n.In(1))
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += len(shape)
	}
	if !ok || len(s.Shape(n.Input[1])) > 1 || axis <= 0 || axis >= len(shape) {
		return selection{}, false
	}
	p := selection{axis: axis}
	for _, k := range indices {
		if k < 0 {
			k += int64(shape[axis])
		}
		if len(p.at) > 0 && int(k) <= p.at[len(p.at)-1] {
			return selection{}, false
		}
		p.at = append(p.at, int(k))
	}
	return p, len(p.at) < shape[axis]
}

// exist reports whether the inputs of a node have the axes of the selections.
func (s *sinking) exist(n onnx.Node, inputs []*selection) bool {
	for i, p := range inputs {
		if p != nil && (p.axis < 0 || p.axis >= len(s.Shape(n.Input[i]))) {
			return false
		}
	}
	return true
}

// through returns the slices that n needs of its inputs to compute only p of its output, false if it can't.
func (s *sinking) through(n onnx.Node, p selection) ([]*selection, bool) {
	needs := make([]*selection, len(n.Input))
	in, out := s.Shape(n.In(0)), s.Shape(n.Output[0])
	switch n.OpType {
	case "Reshape":
		from, ok := unreshape(p, in, out)
		needs[0] = &from
		return needs, ok
	case "Transpose":
		perm := n.Ints("perm")
		if len(perm) != len(out) {
			return nil, false
		}
		needs[0] = &selection{perm[p.axis], p.at}
		return needs, true
	case "MatMul":
		needs[0] = &p
		return needs, s.Weight(n.Input[0]) == nil && s.Weight(n.Input[1]) != nil &&
			len(s.Shape(n.Input[1])) == 2 && p.axis < len(out)-1
	case "Gemm":
		needs[0] = &p
		c := s.Shape(n.In(2))
		return needs, s.Weight(n.Input[0]) == nil && n.Int("transA", 0) == 0 &&
			s.Weight(n.Input[1]) != nil && p.axis == 0 &&
			(len(n.Input) < 3 || s.Weight(n.Input[2]) != nil && (len(c) < 2 || c[0] == 1))
	case "LayerNormalization":
		axis := n.Int("axis", -1)
		if axis < 0 {
			axis += len(in)
		}
		needs[0] = &p
		return needs, p.axis < axis
	case "Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Erf", "Softplus",
		"Neg", "Clip", "Add", "Sub", "Mul", "Div":
		return s.elementwise(n, p)
	}
	return nil, false
}

// elementwise returns what n, which treats every number alike, needs of its inputs, false if one is a
// constant with the axis of the selection.
func (s *sinking) elementwise(n onnx.Node, p selection) ([]*selection, bool) {
	needs := make([]*selection, len(n.Input))
	rank := len(s.Shape(n.Output[0]))
	for i, v := range n.Input {
		shape := s.Shape(v)
		switch axis := p.axis - rank + len(shape); {
		case axis < 0 || shape[axis] == 1: // it is repeated
		case s.Weight(v) != nil:
			return nil, false
		default:
			needs[i] = &selection{axis, p.at}
		}
	}
	return needs, true
}

// unreshape returns the slices of a value that become p when its shape is changed, false if these aren't
// whole slices.
func unreshape(p selection, in, out []int) (selection, bool) {
	if onnx.Size(in) == 0 || onnx.Size(in) != onnx.Size(out) || p.axis >= len(out) {
		return selection{}, false
	}
	inner := onnx.Size(out[p.axis+1:])
	for axis, d := range in {
		if d == 1 || onnx.Size(in[axis+1:]) != inner {
			continue
		}
		// The longer axis is the shorter one, repeated.
		whole := max(d, out[p.axis])
		if len(p.at)*(whole/out[p.axis]) > maxSlices {
			return selection{}, false
		}
		all := repeat(p.at, out[p.axis], whole)
		from := selection{axis: axis}
		for _, k := range all {
			if k < d {
				from.at = append(from.at, k)
			}
		}
		return from, whole%d == 0 && whole%out[p.axis] == 0 && len(from.at)*(whole/d) == len(all) &&
			slices.Equal(repeat(from.at, d, whole), all)
	}
	return selection{}, false
}

// repeat returns the numbers, each below period, again for every period of a whole.
func repeat(numbers []int, period, whole int) []int {
	var out []int
	for from := 0; from < whole; from += period {
		for _, k := range numbers {
			out = append(out, from+k)
		}
	}
	return out
}

// apply inserts a Gather before the first node of each selection, and shrinks the nodes after it.
func (s *sinking) apply() {
	var nodes []*onnxpb.NodeProto
	for _, proto := range s.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		out := n.Output[0]
		p, sinks := s.sunk[out]
		if sinks {
			for i, from := range p.inputs {
				if _, done := s.sunk[n.Input[i]]; from == nil || done {
					continue
				}
				name := fmt.Sprintf("%s/picked %v", n.Input[i], *from)
				if _, done := s.Types[name]; !done {
					nodes = append(nodes, s.newGather(name, n.Input[i], *from))
				}
				n.Input[i] = name
			}
			s.Types[out] = s.selected(out, p.selection)
		}
		if _, selected := s.sunk[n.In(0)]; n.OpType == "Reshape" && sinks || selected && !sinks {
			// A Gather of a value that has no other slices any more is a Reshape.
			n.OpType, n.Attribute, n.Input = "Reshape", nil, []string{n.Input[0], s.shape(out)}
		}
		nodes = append(nodes, proto)
	}
	s.Proto.Graph.Node = nodes
}

// newGather returns the node that selects slices of v.
func (s *sinking) newGather(name, v string, p selection) *onnxpb.NodeProto {
	s.Types[name] = s.selected(v, p)
	indices := s.Fresh(name + "/at")
	s.AddWeight(onnx.IntTensor(indices, p.at, len(p.at)))
	return onnx.NewNode(name, "Gather", []string{v, indices}, []string{name},
		onnx.Attr{Name: "axis", Value: p.axis})
}

// shape returns a constant of the shape of v.
func (s *sinking) shape(v string) string {
	name, shape := s.Fresh(v+"/shape"), s.Shape(v)
	s.AddWeight(onnx.IntTensor(name, shape, len(shape)))
	return name
}

// selected returns the type of a selection of v.
func (s *sinking) selected(v string, p selection) onnx.Type {
	t := s.Types[v]
	t.Shape = slices.Clone(t.Shape)
	t.Shape[p.axis] = len(p.at)
	return t
}
