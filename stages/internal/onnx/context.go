package onnx

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// refuseContexts refuses nodes that stand for a graph which was compiled for a device. Only they may name a
// file in an attribute: the compiled graph, which only that device's library reads.
func refuseContexts(m *onnxpb.ModelProto) error {
	for _, f := range m.Functions {
		if err := refuseContext(f.Node); err != nil {
			return err
		}
	}
	return refuseContext(m.Graph.Node)
}

func refuseContext(nodes []*onnxpb.NodeProto) error {
	for _, proto := range nodes {
		n := Node{proto}
		if n.OpType == "EPContext" {
			return fmt.Errorf("node %s was compiled for one device: take the model that it was made from",
				n.Label())
		}
		for _, g := range Bodies(proto) {
			if err := refuseContext(g.Node); err != nil {
				return err
			}
		}
	}
	return nil
}
