package model_test

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

// TestLargeFixedBatch checks that a large fixed batch is opened if the model takes any batch, and otherwise
// kept if it can be run.
func TestLargeFixedBatch(t *testing.T) {
	for _, c := range []struct {
		name        string
		batch, want int
		reshape     []int64 // of the classes
		err         string
	}{
		{"any", 10_000, 0, nil, ""},
		{"any, by a Reshape", 10_000, 0, []int64{-1, 3}, ""},
		{"that one, by a Reshape", 100, 100, []int64{100, 3}, ""},
		{"that one, which is too large", 10_000, 0, []int64{10_000, 3},
			"its fixed batch of 10000 images"},
		{"a small one", 16, 16, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			modeltest.Runtime(t)
			g := graph{&onnxpb.GraphProto{Name: "fixed"}}
			out := g.op("ReduceMean", []string{"image"}, onnx.Attr{Name: "axes", Value: []int64{2, 3}},
				onnx.Attr{Name: "keepdims", Value: 0})
			if c.reshape != nil {
				out = g.op("Reshape", []string{out, g.ints(c.reshape...)})
			}
			g.Input = []*onnxpb.ValueInfoProto{value("image", float, c.batch, 3, 8, 8)}
			g.Output = []*onnxpb.ValueInfoProto{value(out, float, c.batch, 3)}
			file := modeltest.File(t,
				&onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
					OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g.GraphProto}})
			p := model.ONNX.NewParams().(*model.ONNXParams)
			p.Path = file
			trial, err := model.NewTrial(t.Context(), *p)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer trial.Close()
			if got := trial.Spec.Batch; got != c.want {
				t.Errorf("the batch is %d, want %d", got, c.want)
			}
		})
	}
}
