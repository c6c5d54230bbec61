package rewrite

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// SeparatePads puts a Clip without bounds, which changes nothing, between a Pad of zeros and the MaxPool
// after it. ONNX Runtime fuses the two up to release 1.31, although its MaxPool pads with −∞: if all values
// are negative the results differ. After a Relu no value is.
func SeparatePads(m *onnx.Model) {
	e := &edit{m: m, scope: []*onnxpb.GraphProto{m.Proto.Graph}}
	makers := map[string]onnx.Node{}
	for _, proto := range m.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		for _, v := range n.Output {
			makers[v] = n
		}
	}
	maker := func(v string) onnx.Node {
		n := makers[v]
		for range makers {
			if n.NodeProto == nil || n.OpType != "Identity" {
				break
			}
			n = makers[n.In(0)]
		}
		return n
	}
	for _, proto := range m.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		if n.OpType == "MaxPool" {
			if pad := maker(n.In(0)); e.zeros(pad) {
				if x := maker(pad.In(0)); x.NodeProto == nil || x.OpType != "Relu" {
					n.Input[0] = e.op(n.In(0), "Clip", []string{n.In(0)})
				}
			}
		}
		e.keep(n)
	}
	m.Proto.Graph.Node = e.nodes
}

// zeros reports whether a node is a Pad that may pad with zeros: no other value is known.
func (e *edit) zeros(n onnx.Node) bool {
	if n.NodeProto == nil || n.OpType != "Pad" || n.Text("mode", "constant") != "constant" ||
		n.Float("value", 0) != 0 {
		return false
	}
	fill := e.constant(n.In(2))
	if fill == nil {
		return true
	}
	v, err := onnx.Float32s(fill)
	return err != nil || !slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
}
