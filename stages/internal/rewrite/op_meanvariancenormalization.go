package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// MeanVarianceNormalization is (x − μ)/σ with the mean and deviation over some axes. ONNX adds 1e-9 to σ;
// added under the root, squared, it keeps the derivative finite at σ = 0, and changes σ by less than
// float32 rounds.
var meanVarianceNormalization = []converter{{"MeanVarianceNormalization", 9, Newest,
	func(e *edit, n onnx.Node) error {
		axes := []int{0, 2, 3}
		if n.Has("axes") {
			axes = n.Ints("axes")
		}
		hint, over := n.Output[0], onnx.Attr{Name: "axes", Value: long(axes)}
		centred := e.op(hint, "Sub", []string{n.In(0), e.op(hint, "ReduceMean", n.Input[:1], over)})
		variance := e.op(hint, "ReduceMean", []string{e.op(hint, "Mul", []string{centred, centred})}, over)
		deviation := e.op(hint, "Sqrt",
			[]string{e.op(hint, "Add", []string{variance, e.scalar(hint+"/smallest", 1e-18)})})
		e.to(hint, "Div", []string{centred, deviation})
		return nil
	}}}
