package relevance

import (
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Copy emits node n once more, with other inputs: with[i] in the place of input i, none where with[i] is "".
// What it returns goes to the VJP of the node's operator like the original. With altered operands, that is
// how rules reach operators: the share of W⁺ in what arrives at a Conv is the VJP of its copy with W⁺.
func (b *Builder) Copy(n onnx.Node, with map[int]Value) onnx.Node {
	c := onnx.Node{NodeProto: proto.Clone(n.NodeProto).(*onnxNode)}
	for i, v := range with {
		c.Input[i] = v
		if b.flows[n.Input[i]] && v != "" {
			b.flows[v] = true
		}
	}
	for k := len(c.Input); k > 0 && c.Input[k-1] == ""; k-- {
		c.Input = c.Input[:k-1]
	}
	if g, ok := b.groups[n.Output[0]]; ok {
		b.copyGroup(g, n, c)
		return c
	}
	for i, v := range n.Output {
		if v != "" {
			c.Output[i] = b.again(v)
		}
	}
	c.Name = c.Output[0]
	b.add(c.NodeProto)
	return c
}

// again returns a new name for what is computed once more, of the same type.
func (b *Builder) again(v Value) Value {
	name := b.g.Fresh("grad/" + b.node + "/copy")
	b.g.Types[name] = b.g.Types[v]
	b.flows[name] = b.flows[v]
	return name
}
