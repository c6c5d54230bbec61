package relevance

import (
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// FakeQuantize is a pair of QuantizeLinear and DequantizeLinear with the same scale and zero point, which
// rounds x to multiples of the scale and bounds it; a Clip between them bounds it more. Inputs: x, scale,
// zero point. Pairs are groups for policies with StraightThrough.
//
// The derivative is the straight-through estimator of PyTorch's fake_quantize: dx = dy where x isn't beyond
// the bounds by more than rounding, (q_min − zero − ½)·scale < x < (q_max − zero + ½)·scale. Bengio, Léonard
// and Courville, "Estimating or Propagating Gradients Through Stochastic Neurons", 2013, section 4; Jacob et
// al., CVPR 2018, section 3, for the bounds.
var opFakeQuantize = &Op{
	Type: "FakeQuantize", Kind: Select, Roles: []Role{Data, Config},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		low, high := b.integerBounds(b.groups[n.Output[0]].members)
		scale, zero := b.alongAxis(n, n.Input[1]), Value("")
		if n.In(2) != "" {
			zero = b.alongAxis(n, b.Cast(n.Input[2], onnxpb.TensorProto_FLOAT))
		}
		edge := func(bound Value, half float32) Value {
			bound = b.Add(bound, b.Scalar(half))
			if zero != "" {
				bound = b.Sub(bound, zero)
			}
			return b.Mul(bound, scale)
		}
		return []Value{b.Mul(dy[0], b.Between(n.Input[0], edge(low, -0.5), edge(high, 0.5)))}
	},
}

// integerRanges are those of the types that activations are rounded to.
var integerRanges = map[onnxpb.TensorProto_DataType][2]float32{
	onnxpb.TensorProto_UINT8: {0, 255}, onnxpb.TensorProto_INT8: {-128, 127},
}

// integerBounds returns the least and the greatest integer of a pair.
func (b *Builder) integerBounds(members []onnx.Node) (low, high Value) {
	r := integerRanges[b.g.Types[members[0].Output[0]].Elem]
	low, high = b.Scalar(r[0]), b.Scalar(r[1])
	if clip := members[1]; clip.OpType == "Clip" {
		if v := clip.In(1); v != "" {
			low = b.Cast(v, onnxpb.TensorProto_FLOAT)
		}
		if v := clip.In(2); v != "" {
			high = b.Cast(v, onnxpb.TensorProto_FLOAT)
		}
	}
	return low, high
}

// alongAxis emits a scale or a zero point so that it broadcasts to what a pair reads: it is one for all, or
// one for each index of an axis.
func (b *Builder) alongAxis(n onnx.Node, v Value) Value {
	if size(b.Shape(v)) == 1 {
		return b.Reshape(v)
	}
	rank := len(b.Shape(n.Input[0]))
	shape := make([]int, rank)
	for i := range shape {
		shape[i] = 1
	}
	axis := int(b.groups[n.Output[0]].members[0].Int("axis", 1))
	if axis < 0 {
		axis += rank
	}
	shape[axis] = size(b.Shape(v))
	return b.Reshape(v, shape...)
}

// pairs has every pair of QuantizeLinear and DequantizeLinear in the model as one node.
func (b *Builder) pairs() {
	makers := map[Value]onnx.Node{}
	for _, n := range b.model {
		makers[n.Output[0]] = n
	}
	for i, last := range b.model {
		members := b.pair(makers, last)
		if members == nil {
			continue
		}
		b.groups[last.Output[0]] = group{op: opFakeQuantize, members: members}
		b.model[i] = onnx.Node{NodeProto: &onnxNode{OpType: opFakeQuantize.Type, Domain: "runexp",
			Name: last.Name, Input: members[0].Input, Output: last.Output}}
	}
}

// pair returns the nodes of the pair that a DequantizeLinear ends, nil if it ends none.
func (b *Builder) pair(makers map[Value]onnx.Node, last onnx.Node) []onnx.Node {
	is := func(n onnx.Node, op string) bool {
		return n.NodeProto != nil && n.OpType == op && (n.Domain == "" || n.Domain == "ai.onnx")
	}
	if !is(last, "DequantizeLinear") {
		return nil
	}
	members := []onnx.Node{last}
	first := makers[last.Input[0]]
	if is(first, "Clip") && !b.dynamic(first.In(1)) && !b.dynamic(first.In(2)) {
		members = []onnx.Node{first, last}
		first = makers[first.Input[0]]
	}
	if !is(first, "QuantizeLinear") || !b.sameWeight(first.In(1), last.In(1)) ||
		!b.sameWeight(first.In(2), last.In(2)) || first.Int("axis", 1) != last.Int("axis", 1) {
		return nil
	}
	if _, ok := integerRanges[b.g.Types[first.Output[0]].Elem]; !ok {
		return nil
	}
	return append([]onnx.Node{first}, members...)
}

// sameWeight reports whether two values are the same for every image.
func (b *Builder) sameWeight(v, w Value) bool {
	if v == w {
		return v == "" || !b.dynamic(v)
	}
	x, y := b.g.Weight(v), b.g.Weight(w)
	if x == nil || y == nil {
		return false
	}
	x, y = proto.Clone(x).(*onnxpb.TensorProto), proto.Clone(y).(*onnxpb.TensorProto)
	x.Name, y.Name = "", ""
	return proto.Equal(x, y)
}
