package model

import (
	"strings"
	"testing"
	"unicode"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

func FuzzDescribe(f *testing.F) {
	for _, p := range []*onnxpb.GraphProto{
		{Node: []*onnxpb.NodeProto{{OpType: "Conv"}, {OpType: "Sub", Input: []string{"x"}}, {}},
			Output: []*onnxpb.ValueInfoProto{{Name: "y"}}},
		{Input: []*onnxpb.ValueInfoProto{{Name: "x"}},
			Node: []*onnxpb.NodeProto{{OpType: "BatchNormalization", Input: []string{"x"},
				Output: []string{"y"}}},
			Output: []*onnxpb.ValueInfoProto{{Name: "y"}}},
	} {
		b, err := (&onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, Graph: p,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}}}).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Describing never panics on a model that Parse accepts.
		m, err := onnx.Parse(b)
		if err != nil {
			return
		}
		var x Inspection
		x.describe(m)
		for _, v := range append(x.Inputs, x.Outputs...) {
			if strings.ContainsFunc(v.String(), unicode.IsControl) {
				t.Errorf("%q can paint the terminal", v)
			}
		}
	})
}
