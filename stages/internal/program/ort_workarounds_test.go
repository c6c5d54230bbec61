package program_test

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestReleaseDependent checks that nets with operators that releases of ONNX Runtime compute differently have
// the answers of their graph: up to 1.26, the file has others for a capped Attention with a mask and a
// FusedConv with a sum.
func TestReleaseDependent(t *testing.T) {
	for _, name := range []string{"attention", "fused"} {
		n, slot := net(t, model.ONNXParams{Path: filepath.Join("testdata", "nets", name+".onnx"),
			Preset: "unit"}), threaded{1, stagetest.NewSlot()}
		want, _ := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
		if d := deviation(classify(t, n, slot, 2, 2), want); d > 1e-5 {
			t.Errorf("%s: answers deviate by %.1e from those of the graph", name, d)
		}
	}
}
