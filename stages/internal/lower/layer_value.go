package lower

import "slices"

// layerValue returns the value of a forward program's layer.
func (u *unit) layerValue() error {
	u.forward = slices.Clip(u.graph.Proto.Graph.Node)
	u.value(0, u.Question)
	return nil
}

// value returns the value of question k's layer.
func (u *unit) value(k int, q Question) {
	of := prefix + "images"
	if q.Layer != "" {
		of = q.Layer
	}
	v := IO{"value" + number(k), u.shapes[k].LayerShape(u.batch)}
	f := u.graph.Fragment()
	f.OpTo(v.Value(), "Identity", []string{of})
	u.graph.After(f)
	u.signature.Outputs = append(u.signature.Outputs, v)
}
