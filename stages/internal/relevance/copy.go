package relevance

import (
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Copy emits node n again with other inputs: with[i] replaces input i, and removes it if "". The copy can be
// passed to the VJP of the node's operator like the original. Rules apply operators to modified operands in
// this way: the relevance that W⁺ propagates through a Conv is the VJP of its copy with W⁺.
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
			c.Output[i] = b.freshCopy(v)
		}
	}
	c.Name = c.Output[0]
	b.add(c.NodeProto)
	return c
}

// freshCopy returns a new name for a copy of v, of the same type.
func (b *Builder) freshCopy(v Value) Value {
	name := b.g.Fresh("grad/" + b.node + "/copy")
	b.g.Types[name] = b.g.Types[v]
	b.flows[name] = b.flows[v]
	return name
}
