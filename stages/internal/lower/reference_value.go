package lower

// referenceValue returns the layer's value for the reference.
func (u *unit) referenceValue() error {
	v := IO{"reference_value", u.shapes[0].LayerShape(u.batch)}
	f := u.graph.Fragment()
	f.OpTo(v.Value(), "Identity", []string{u.Layer})
	u.graph.After(f)
	u.signature.Outputs = append(u.signature.Outputs, v)
	return nil
}
