package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// substituteLayer makes all nodes that read the layer's value read the request's substitute instead.
func (u *unit) substituteLayer() error {
	name := u.graph.Fresh("runexp_layer")
	f := u.graph.Fragment()
	f.OpTo(name, "Identity", []string{u.Substitute(f)})
	for _, node := range u.graph.Proto.Graph.Node {
		onnx.Retake(node, map[string]string{u.Layer: name})
	}
	u.graph.Types[name] = u.graph.Types[u.Layer]
	if u.graph.Root == u.Layer {
		u.graph.Root = name
	}
	u.graph.Before(f)
	u.wrt[0] = name
	return nil
}

// layerValue returns the value of a forward program's layer.
func (u *unit) layerValue() error {
	u.forward = slices.Clip(u.graph.Proto.Graph.Node)
	u.value(0, u.Question)
	return nil
}

// value returns the value of question k's layer.
func (u *unit) value(k int, q Question) {
	v := IO{"value" + number(k), u.shapes[k].LayerShape(u.batch)}
	of := q.Layer
	if of == "" {
		of = prefix + "images"
		u.signature.Echoes = append(u.signature.Echoes, v.Name)
	}
	f := u.graph.Fragment()
	f.OpTo(v.Value(), "Identity", []string{of})
	u.graph.After(f)
	u.signature.Outputs = append(u.signature.Outputs, v)
}
