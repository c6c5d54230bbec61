package lower

import (
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// answer emits the answer [batch, classes].
func (u *unit) answer() error {
	f := u.graph.Fragment()
	f.OpTo(Answer, "Reshape", []string{u.Output, f.Ints("rows", u.rows(), 2)})
	u.graph.After(f)
	return nil
}

// explainedNumber emits the answer, followed by the nodes that compute the explained numbers from it: rules
// of comparisons propagate relevance through these nodes, whereas a gradient needs only their derivative.
func (u *unit) explainedNumber() error {
	g := u.graph
	f := g.Fragment()
	f.OpTo(Answer, "Reshape", []string{u.Output, f.Ints("rows", u.rows(), 2)})
	addOf := func(shape []int, name string) {
		g.Types[name] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
		u.explained = name
	}
	add := func(name string) { addOf([]int{u.batch, u.Classes}, name) }
	reshape := func(shape []int) {
		to := g.Fresh("runexp_shape")
		g.AddWeight(onnx.IntTensor(to, shape, len(shape)))
		addOf(shape, f.Op("Reshape", []string{u.explained, to}))
	}
	add(Answer)
	switch {
	case u.Probability && !u.Probabilities && u.Independent:
		add(f.Op("Sigmoid", []string{Answer}))
	case u.Probability && !u.Probabilities && u.Heads > 0:
		reshape(u.headRows())
		addOf(u.headRows(), f.Op("Softmax", []string{u.explained}, onnx.Attr{Name: "axis", Value: -1}))
		reshape([]int{u.batch, u.Classes})
	case u.Probability && !u.Probabilities:
		add(f.Op("Softmax", []string{Answer}, onnx.Attr{Name: "axis", Value: -1}))
	case !u.Probability && u.Probabilities:
		least := g.Fresh("runexp_smallest")
		g.AddWeight(onnx.FloatTensor(least, []float32{smallest}))
		add(f.Op("Max", []string{Answer, least}))
		add(f.Op("Log", []string{u.explained}))
	}
	g.After(f)
	return nil
}
