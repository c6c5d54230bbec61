package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// BatchNormalization could normalise every position by itself up to 8, and could have up to five outputs,
// for training, up to 13; from 14 on it has an attribute for training.
var batchNormalization = []converter{
	{"BatchNormalization", Oldest, 13, func(e *edit, n onnx.Node) error {
		switch {
		case n.Int("spatial", 1) != 1:
			return fmt.Errorf("opset %d has no BatchNormalization of single positions", Opset)
		case !singleOutput(n):
			return fmt.Errorf("it is written for training")
		}
		drop(n, "spatial")
		n.Output = n.Output[:1]
		e.keep(n)
		return nil
	}},
	{"BatchNormalization", 14, Newest, func(e *edit, n onnx.Node) error {
		if n.Int("training_mode", 0) != 0 {
			return fmt.Errorf("it is written for training")
		}
		e.keep(n)
		return nil
	}},
}
