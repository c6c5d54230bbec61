package program_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

func small(t *testing.T, name string) model.ONNXParams {
	t.Helper()
	modeltest.Runtime(t)
	return model.ONNXParams{Path: filepath.Join("testdata", "nets", name+".onnx"), Preset: "unit"}
}

// TestGraph holds that every value of a graph has a known type and shape, with as many rows as images,
// whatever form the model has.
func TestGraph(t *testing.T) {
	for _, name := range []string{"attention", "fused", "grey", "grid", "half", "last", "means", "opset18",
		"opset21", "opset7", "sequence", "single", "softmax", "tokens"} {
		n := net(t, small(t, name))
		batch := n.Fit(4, 4)
		g, err := n.Graph(t.Context(), stagetest.NewSlot(), batch)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if g.Opset() != rewrite.Opset {
			t.Errorf("%s: opset %d", name, g.Opset())
		}
		for _, node := range g.Proto.Graph.Node {
			for _, v := range node.Output {
				s, ok := g.Types[v]
				if !ok || slices.ContainsFunc(s.Shape, func(d int) bool { return d < 1 }) {
					t.Errorf("%s: %q has the type %v", name, v, s)
				}
				if len(s.Shape) == 4 && s.Shape[0] != batch {
					t.Errorf("%s: %q has the shape %v", name, v, s.Shape)
				}
			}
		}
		if d := cmp.Diff([]int{batch, 5}, g.Shape(n.Output)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestGraphKeepsNormalisation holds that BatchNormalization stays apart.
func TestGraphKeepsNormalisation(t *testing.T) {
	n := net(t, small(t, "grey"))
	g, err := n.Graph(t.Context(), stagetest.NewSlot(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, node := range g.Proto.Graph.Node {
		got = append(got, node.OpType)
	}
	want := []string{"Conv", "BatchNormalization", "Relu", "MaxPool", "Conv", "Relu", "GlobalAveragePool",
		"Flatten", "Gemm"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestGraphIsOnesOwn holds that what one caller does to a graph isn't seen by the next.
func TestGraphIsOnesOwn(t *testing.T) {
	n := net(t, small(t, "grey"))
	slot := stagetest.NewSlot()
	first, err := n.Graph(t.Context(), slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	nodes := len(first.Proto.Graph.Node)
	first.Proto.Graph.Node[0].Input[0] = "changed"
	first.Proto.Graph.Node = first.Proto.Graph.Node[:1]
	first.AddWeight(onnx.FloatTensor("added", []float32{1}, 1))
	second, err := n.Graph(t.Context(), slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Proto.Graph.Node) != nodes || second.Proto.Graph.Node[0].Input[0] == "changed" ||
		second.Weight("added") != nil {
		t.Error("the change is there")
	}
}

// TestGraphOfAFixedBatch checks the error of a model of one image at a time.
func TestGraphOfAFixedBatch(t *testing.T) {
	n := net(t, small(t, "single"))
	if _, err := n.Graph(t.Context(), stagetest.NewSlot(), 2); err == nil ||
		!strings.Contains(err.Error(), "takes 1 images at once, not 2") {
		t.Errorf("error %v", err)
	}
}
