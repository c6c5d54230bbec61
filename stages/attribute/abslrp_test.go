package attribute

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestAbsLRPContrast holds what relevance starts with, of class 1 of five.
func TestAbsLRPContrast(t *testing.T) {
	alone, others := []float32{0, 1, 0, 0, 0}, []float32{0.25, 0, 0.25, 0.25, 0.25}
	both := []float32{-0.2, 1, -0.2, -0.2, -0.2}
	for _, tt := range []struct {
		variant, contrast string
		classes           int
		attention         bool
		minus             int
		starts            [][]float32
		signs             []float64
	}{
		{"paper", "variant", 1000, false, -1, [][]float32{both}, []float64{1}},
		{"paper", "variant", 1000, true, -1, [][]float32{both}, []float64{1}},
		{"paper", "none", 1000, false, -1, [][]float32{alone}, []float64{1}},
		{"official", "variant", 1000, false, -1, [][]float32{alone, others}, []float64{1, -1}},
		{"official", "single-pass", 1000, true, -1, [][]float32{both}, []float64{1}},
		{"official-2024-01", "variant", 1000, false, -1, [][]float32{both}, []float64{1}},
		{"official-2024-01", "variant", 1000, true, -1, [][]float32{alone, others}, []float64{1, -1}},
		{"paper", "variant", 1000, false, 3, [][]float32{{0, 1, 0, -1, 0}}, []float64{1}},
		{"official", "variant", 1000, false, 3, [][]float32{alone, {0, 0, 0, 1, 0}}, []float64{1, -1}},
		{"official", "none", 1000, false, 3, [][]float32{alone}, []float64{1}},
		{"paper", "auto", 99, false, -1, [][]float32{alone, others}, []float64{1, -1}},
		{"paper", "auto", 100, false, -1, [][]float32{both}, []float64{1}},
		{"paper", "auto", 100, true, -1, [][]float32{alone, others}, []float64{1, -1}},
		{"paper", "variant", 2, true, -1, [][]float32{both}, []float64{1}},
		{"paper", "single-pass", 2, true, -1, [][]float32{both}, []float64{1}},
		{"paper", "none", 2, true, -1, [][]float32{alone}, []float64{1}},
		{"official", "auto", 1000, false, -1, [][]float32{alone, others}, []float64{1, -1}},
		{"official-2024-01", "auto", 2, false, -1, [][]float32{both}, []float64{1}},
		{"official-2024-01", "auto", 1000, true, -1, [][]float32{alone, others}, []float64{1, -1}},
	} {
		var starts [][]float32
		var signs []float64
		for _, p := range absLRP(tt.variant, tt.contrast).starts(tt.classes, tt.attention) {
			row := make([]float32, 5)
			if err := p.counts(row, program.Target{Class: 1, Minus: tt.minus}); err != nil {
				t.Fatal(err)
			}
			starts, signs = append(starts, row), append(signs, math.Copysign(1, p.factor.of([]float32{1})))
		}
		for _, row := range starts {
			for i := range row {
				row[i] += 0 // no negative zeros
			}
		}
		if d := cmp.Diff(tt.starts, starts); d != "" {
			t.Errorf("%s, %s, %d classes, attention %t, minus %d: %s", tt.variant, tt.contrast, tt.classes,
				tt.attention, tt.minus, d)
		}
		if d := cmp.Diff(tt.signs, signs); d != "" {
			t.Errorf("%s, %s: signs %s", tt.variant, tt.contrast, d)
		}
	}
}

// TestAbsLRPRefuses checks the errors where a parameter doesn't fit the model or another one.
func TestAbsLRPRefuses(t *testing.T) {
	a := read(t, "abslrp", "smallcnn.npz")
	in := officialImage(modeltest.Official(t, "smallcnn", 0), a["x"].Float32s()[:3*32*32], 0)
	for ablation, want := range map[string]string{
		"values-only":       "ablation values-only: the model has no attention",
		"queries-keys-only": "ablation queries-keys-only: the model has no attention",
		"patch":             "ablation patch: the model has no patch embedding",
	} {
		p := absLRP("paper", "variant")
		p.Reduce, p.Ablation = "sum", ablation
		if _, err := stagetest.Try(AbsLRP, p, in); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "ablation none fits") {
			t.Errorf("ablation %s: %v", ablation, err)
		}
	}
	for field, change := range map[string]func(p *AbsLRPParams){
		"output": func(p *AbsLRPParams) { p.Output = "probability" },
		"layer":  func(p *AbsLRPParams) { p.Ablation, p.Layer, p.Reduce = "patch", "final", "sum" },
		"reduce": func(p *AbsLRPParams) { p.Ablation = "patch" },
	} {
		p := absLRP("paper", "variant")
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// withSoftmax returns a model of logits with a softmax at its end.
func withSoftmax(t *testing.T, path, preset string) stages.Data {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode("softmax", "Softmax",
		[]string{m.Outputs()[0].Name}, []string{"p"}, onnx.Attr{Name: "axis", Value: 1}))
	m.SetOutputs(onnx.Value{Name: "p", Elem: onnxpb.TensorProto_FLOAT})
	if b, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "probabilities.onnx")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return modeltest.Model(t, model.ONNXParams{Path: path, Preset: preset, Kind: "probabilities"})
}

// TestAbsLRPOfProbabilities checks that the map is the same for a model that ends with a softmax, where
// relevance starts behind it, and the scale of the paper's map.
func TestAbsLRPOfProbabilities(t *testing.T) {
	a := read(t, "abslrp", "smallcnn.npz")
	of := func(net stages.Data, p *AbsLRPParams) []float32 {
		return absLRPMaps(t, net, p, a["x"], a["target"])[0]
	}
	scores := modeltest.Official(t, "smallcnn", 0)
	probabilities := withSoftmax(t, filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"), "unit")
	for _, variant := range []string{"paper", "official", "official-2024-01"} {
		p := absLRP(variant, "none")
		got, want := of(probabilities, p), of(scores, p)
		apart(t, variant, got, want, 1e-5)
		sum := 0.0
		for _, v := range want {
			sum += math.Abs(float64(v))
		}
		if !(math.Abs(sum-1) <= 1e-5) {
			t.Errorf("%s: magnitudes sum to %v", variant, sum)
		}
	}
}
