package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// ONNX Runtime's optimiser fuses the sum of a residual connection, and a bias, with the normalisation after
// it; the sum is the fourth output.
var skipLayerNormalization = []converter{
	{"com.microsoft.SkipLayerNormalization", Oldest, Newest, func(e *edit, n onnx.Node) error {
		x, err := e.skip(n, n.In(4))
		if err != nil {
			return err
		}
		in := []string{x, n.In(2)}
		if n.In(3) != "" {
			in = append(in, n.In(3))
		}
		e.to(n.Output[0], "LayerNormalization", in,
			onnx.Attr{Name: "epsilon", Value: n.Float("epsilon", 1e-12)})
		return nil
	}},
	{"com.microsoft.SkipSimplifiedLayerNormalization", Oldest, Newest, func(e *edit, n onnx.Node) error {
		x, err := e.skip(n, n.In(3))
		if err != nil {
			return err
		}
		e.rms(n.Output[0], x, n.In(2), []int64{-1}, n.Float("epsilon", 1e-12))
		return nil
	}},
}

// skip writes the sum that is normalised and returns its name.
func (e *edit) skip(n onnx.Node, bias string) (string, error) {
	if !singleOutput(n) && (n.Output[1] != "" || len(n.Output) > 2 && n.Output[2] != "") {
		return "", fmt.Errorf("it hands its mean or its variance on")
	}
	x := n.In(0)
	if bias != "" {
		x = e.op(n.Output[0], "Add", []string{x, bias})
	}
	if len(n.Output) > 3 && n.Output[3] != "" {
		e.to(n.Output[3], "Add", []string{x, n.In(1)})
		return n.Output[3], nil
	}
	return e.op(n.Output[0], "Add", []string{x, n.In(1)}), nil
}
