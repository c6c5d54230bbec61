package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// RMSNormalization came at 23: x/√(mean of x² + ε) over the last axes, times a scale.
var rmsNormalization = []pass{{"RMSNormalization", 23, Newest, func(e *edit, n onnx.Node) error {
	x, hint := n.In(0), n.Output[0]
	rank, err := e.rank(x)
	if err != nil {
		return err
	}
	axis := n.Int("axis", -1)
	if axis < 0 {
		axis += rank
	}
	var axes []int64
	for a := axis; a < rank; a++ {
		axes = append(axes, int64(a))
	}
	mean := e.op(hint, "ReduceMean", []string{e.op(hint, "Mul", []string{x, x})}, onnx.Attr{Name: "axes", Value: axes})
	root := e.op(hint, "Sqrt", []string{e.op(hint, "Add", []string{mean, e.scalar(hint+"/epsilon", n.Float("epsilon", 1e-5))})})
	e.to(n.Output[0], "Mul", []string{e.op(hint, "Div", []string{x, root}), n.In(1)})
	return nil
}}}
