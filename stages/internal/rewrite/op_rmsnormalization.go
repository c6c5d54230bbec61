package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// RMSNormalization was introduced in opset 23: x/√(mean of x² + ε) over the last axes, times a scale. ONNX
// Runtime's optimiser calls it SimplifiedLayerNormalization.
var rmsNormalization = []converter{
	{"RMSNormalization", 23, Newest, normaliseRoot},
	{"SimplifiedLayerNormalization", Oldest, Newest, normaliseRoot},
}

func normaliseRoot(e *edit, n onnx.Node) error {
	rank, err := e.rank(n.In(0))
	if err != nil {
		return err
	}
	if !singleOutput(n) {
		return fmt.Errorf("it hands more on than its result")
	}
	axis := n.Int("axis", -1)
	if axis < 0 {
		axis += rank
	}
	var axes []int64
	for a := axis; a < rank; a++ {
		axes = append(axes, int64(a))
	}
	e.rms(n.Output[0], n.In(0), n.In(1), axes, n.Float("epsilon", 1e-5))
	return nil
}

// rms writes x/√(mean of x² over axes + ε)·scale, whose output is called out.
func (e *edit) rms(out, x, scale string, axes []int64, epsilon float32) {
	mean := e.op(out, "ReduceMean", []string{e.op(out, "Mul", []string{x, x})},
		onnx.Attr{Name: "axes", Value: axes})
	root := e.op(out, "Sqrt", []string{e.op(out, "Add", []string{mean, e.scalar(out+"/epsilon", epsilon)})})
	e.to(out, "Mul", []string{e.op(out, "Div", []string{x, root}), scale})
}
