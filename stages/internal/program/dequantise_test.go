package program_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestQuantisedWeights holds that a net whose weights are kept as small integers has the derivatives, to the
// bit, of one with the floats that these stand for.
func TestQuantisedWeights(t *testing.T) {
	write := func(quantised bool) string {
		m, err := onnx.ReadFile(filepath.Join("testdata", "nets", "grey.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		g := m.Proto.Graph
		var nodes []*onnxpb.NodeProto
		done := 0
		for i, w := range g.Initializer {
			if len(w.Dims) < 2 {
				continue
			}
			v, err := onnx.Float32s(w)
			if err != nil {
				t.Fatal(err)
			}
			const step = 1. / 64
			small := &onnxpb.TensorProto{Name: w.Name + "/small", DataType: int32(onnxpb.TensorProto_INT8),
				Dims: w.Dims}
			floats := make([]float32, len(v))
			for k, x := range v {
				q := int8(max(-127, min(127, math.Round(float64(x)/step))))
				small.RawData = append(small.RawData, byte(q))
				floats[k] = float32(q) * step
			}
			done++
			if quantised {
				g.Initializer[i] = small
				g.Initializer = append(g.Initializer, onnx.FloatTensor(w.Name+"/step", []float32{step}))
				nodes = append(nodes, onnx.NewNode("", "DequantizeLinear",
					[]string{small.Name, w.Name + "/step"}, []string{w.Name}))
				continue
			}
			shape := make([]int, len(w.Dims))
			for k, d := range w.Dims {
				shape[k] = int(d)
			}
			g.Initializer[i] = onnx.FloatTensor(w.Name, floats, shape...)
		}
		if done < 2 {
			t.Fatalf("the net has %d weights to quantise", done)
		}
		g.Node = append(nodes, g.Node...)
		for _, o := range m.Proto.OpsetImport {
			o.Version = max(o.Version, 13)
		}
		return modeltest.File(t, m)
	}
	derivatives := func(path string) []float32 {
		n := net(t, model.ONNXParams{Path: path, Preset: "unit"})
		_, d := differentiate(t, n, threaded{1, stagetest.NewSlot()},
			lower.Question{Rules: relevance.Derivative()}, 2, 2)
		return d
	}
	want := derivatives(write(false))
	if got := derivatives(write(true)); !sameBits(got, want) {
		t.Error("the derivatives have other bits")
	}
}
