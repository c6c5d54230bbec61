package lower

// answer emits the answer [batch, classes].
func (u *unit) answer() error {
	f := u.graph.Fragment()
	f.OpTo(Answer, "Reshape", []string{u.Output, f.Ints("rows", u.rows(), 2)})
	u.graph.After(f)
	return nil
}
