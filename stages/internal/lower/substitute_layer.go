package lower

import "github.com/runexp/runexp/stages/internal/onnx"

// substituteLayer has all nodes that read the layer's value read what the request emits instead.
func (u *unit) substituteLayer() error {
	name := u.graph.Fresh("runexp_layer")
	f := u.graph.Fragment()
	f.OpTo(name, "Identity", []string{u.Substitute(f)})
	for _, node := range u.graph.Proto.Graph.Node {
		onnx.Retake(node, map[string]string{u.Layer: name})
	}
	u.graph.Types[name] = u.graph.Types[u.Layer]
	u.graph.Before(f)
	u.wrt[0] = name
	return nil
}
