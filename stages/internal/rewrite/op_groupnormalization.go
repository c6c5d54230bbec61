package rewrite

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// mostGroups bounds the number of groups that a model can claim.
const mostGroups = 1 << 16

// GroupNormalization rewrites GroupNormalization before ONNX Runtime, which has no kernel for it, inlines
// its definition: rules recognise other operators, and these round better. It needs no shapes, and leaves
// nodes that it can't express.
func GroupNormalization(m *onnx.Model) {
	e := &edit{m: m, scope: []*onnxpb.GraphProto{m.Proto.Graph}}
	version := m.Opset()
	for _, proto := range m.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		i := slices.IndexFunc(groupNormalization, func(p converter) bool {
			return p.op == n.OpType && (n.Domain == "" || n.Domain == "ai.onnx") && p.from <= version &&
				version <= p.to
		})
		if i < 0 || len(n.Input) != 3 || len(n.Output) != 1 || groupNormalization[i].apply(e, n) != nil {
			e.keep(n)
		}
	}
	m.Proto.Graph.Node = e.nodes
}

// GroupNormalization was introduced in opset 18: (x − μ)/√(σ² + ε) with the mean and variance of a group of
// channels, times a scale, plus a bias (Wu & He 2018, equation 1). It is InstanceNormalization of x with
// groups as channels. Up to 20 a group has a scale and a bias, later a channel.
var groupNormalization = []converter{
	{"GroupNormalization", 18, 20, func(e *edit, n onnx.Node) error {
		groups := n.Int("num_groups", 0)
		if groups < 1 {
			e.keep(n)
			return nil
		}
		e.to(n.Output[0], "Reshape",
			[]string{e.groups(n, groups, n.In(1), n.In(2)), e.op(n.Output[0], "Shape", n.Input[:1])})
		return nil
	}},
	{"GroupNormalization", 21, Newest, func(e *edit, n onnx.Node) error {
		hint, groups, scale := n.Output[0], n.Int("num_groups", 0), e.constant(n.In(1))
		if groups < 1 || groups > mostGroups || scale == nil || len(scale.Dims) != 1 {
			e.keep(n)
			return nil
		}
		constant := func(name string, v float32) string {
			return e.weight(onnx.FloatTensor(e.m.Fresh(hint+"/"+name), slices.Repeat([]float32{v}, groups),
				groups))
		}
		y := e.groups(n, groups, constant("one", 1), constant("zero", 0))
		y = e.reshape(hint, y, 0, int(scale.Dims[0]), -1)
		y = e.op(hint, "Mul", []string{y, e.reshape(hint, n.In(1), -1, 1)})
		y = e.op(hint, "Add", []string{y, e.reshape(hint, n.In(2), -1, 1)})
		e.to(hint, "Reshape", []string{y, e.op(hint, "Shape", n.Input[:1])})
		return nil
	}},
}

// groups writes the normalisation of groups, of the shape [N,G,·].
func (e *edit) groups(n onnx.Node, groups int, scale, bias string) string {
	x := e.reshape(n.Output[0], n.In(0), 0, groups, -1)
	return e.op(n.Output[0], "InstanceNormalization", []string{x, scale, bias},
		onnx.Attr{Name: "epsilon", Value: n.Float("epsilon", 1e-5)})
}
