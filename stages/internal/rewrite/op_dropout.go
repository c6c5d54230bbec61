package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Dropout returns its input outside training. Up to 11 the ratio was an attribute, from 12 on an input
// switches training on.
var dropout = []converter{{"Dropout", Oldest, Newest, func(e *edit, n onnx.Node) error {
	if training := n.In(2); training != "" {
		t := e.constant(training)
		if t == nil || len(t.RawData) > 0 && t.RawData[0] != 0 || len(t.Int32Data) > 0 &&
			t.Int32Data[0] != 0 {
			return fmt.Errorf("it is written for training")
		}
	}
	if !singleOutput(n) {
		return fmt.Errorf("its mask is read")
	}
	e.to(n.Output[0], "Identity", n.Input[:1])
	return nil
}}}
