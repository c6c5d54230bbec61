package model_test

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

// inspected returns what is found of a graph that makes class scores of images of 8×8 pixels.
func inspected(t *testing.T, g graph, out string, classes int) model.Inspection {
	t.Helper()
	g.Input = []*onnxpb.ValueInfoProto{value("image", float, -1, 3, 8, 8)}
	g.Output = []*onnxpb.ValueInfoProto{value(out, float, -1, classes)}
	file := modeltest.File(t, &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g.GraphProto}})
	x, err := model.Inspect(t.Context(), model.ONNXParams{Path: file, Preset: "imagenet", Layout: "auto",
		Order: "auto", Kind: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A class that is masked by −∞ has the probability 0; a logit of +∞ has none. Neither is taken for a random
// answer, or for one that depends on the batch.
func TestInfiniteLogits(t *testing.T) {
	modeltest.Runtime(t)
	for _, softmax := range []bool{false, true} {
		for _, c := range []struct {
			logit   float64
			problem string
		}{{math.Inf(-1), ""}, {math.Inf(1), "infinite"}, {math.NaN(), "NaN"}} {
			g := graph{&onnxpb.GraphProto{Name: "g"}}
			weight := onnx.FloatTensor("mask", []float32{0, 0, float32(c.logit)}, 3)
			g.Initializer = append(g.Initializer, weight)
			pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{"image"})})
			out := g.op("Add", []string{pooled, "mask"})
			want := c.problem
			if softmax {
				out = g.op("Softmax", []string{out}, onnx.Attr{Name: "axis", Value: 1})
				if want != "" {
					want = "NaN"
				}
			}
			x := inspected(t, g, out, 3)
			if (x.Problem == "") != (want == "") || !strings.Contains(x.Problem, want) {
				t.Errorf("%v, softmax %v: %q, want %q", c.logit, softmax, x.Problem, want)
			}
			if want == "" && x.Feed.Batch != 0 {
				t.Errorf("%v, softmax %v: batch %d", c.logit, softmax, x.Feed.Batch)
			}
		}
	}
}
