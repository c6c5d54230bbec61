package onnx_test

import (
	"fmt"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestExpressionsOfOutputs holds that no two outputs of a node have the same digest, however many it has.
func TestExpressionsOfOutputs(t *testing.T) {
	outputs := make([]string, 600)
	for i := range outputs {
		outputs[i] = fmt.Sprint("part ", i)
	}
	split := onnx.NewNode("split", "Split", []string{"x"}, outputs)
	x := onnx.NewExpressions([]*onnxpb.NodeProto{split},
		func(v string) onnx.Sum { return onnx.SumOf([]byte(v)) })
	seen := map[onnx.Sum]string{}
	for _, v := range outputs {
		s := x.Value(v)
		if other, ok := seen[s]; ok {
			t.Fatalf("%s has the digest of %s", v, other)
		}
		seen[s] = v
	}
}
