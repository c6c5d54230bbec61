package attribute

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// quantisedInput returns the net of quantised.py, changed, and the picture whose class 3 is explained.
func quantisedInput(t *testing.T, change func(*onnx.Model)) map[string][]stages.Data {
	t.Helper()
	m, err := onnx.ReadFile(filepath.Join("testdata", "quantised.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(m)
	}
	return map[string][]stages.Data{
		"model":   {modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})},
		"images":  {stagetest.Items(nil, formulaImage(32).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{3}, 1).Encode())},
	}
}

// backward returns the parameters of attribute/input-x-gradient with a backward pass.
func backward(t *testing.T, text string) *InputXGradientParams {
	t.Helper()
	p := InputXGradientParams{plain(tapped())}
	p.Reduce = "none"
	if err := p.Backward.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestStraightThrough compares derivatives of rounded activations with those of PyTorch's fake_quantize in
// double precision: unsigned and signed, in a range made less by a Clip, with values beyond the bounds.
func TestStraightThrough(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "quantised.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]json.RawMessage
	if err := json.Unmarshal(b, &kept); err != nil {
		t.Fatal(err)
	}
	in := quantisedInput(t, nil)
	for _, name := range []string{"{quantize: straight-through}",
		"{activation: ratio, quantize: straight-through}"} {
		var want keptMap
		if err := json.Unmarshal(kept[name], &want); err != nil {
			t.Fatal(err)
		}
		values, sum, norm := want.off(mapsOf(t, InputXGradient, backward(t, name), in)[0])
		t.Logf("%s: values off by %.2g, the sum by %.2g, the norm by %.2g", name, values, sum, norm)
		if !(max(values, sum, norm) <= 1e-5) {
			t.Errorf("%s: values off by %.2g, the sum by %.2g, the norm by %.2g", name, values, sum, norm)
		}
	}
}

// TestRoundedLayers: what a Clip of integers returns is no layer, as the methods of layers need numbers.
func TestRoundedLayers(t *testing.T) {
	in := quantisedInput(t, nil)
	for _, layer := range []string{"middle", "final"} {
		cam := CAM{Tapped: tappedAt(layer), Upsample: "bilinear"}
		mapsOf(t, EigenCAM, &EigenCAMParams{cam, "paper"}, in)
		p := GradCAMParams{GradientCAM{CAM: cam}}
		if err := p.Backward.UnmarshalText([]byte("{quantize: straight-through}")); err != nil {
			t.Fatal(err)
		}
		mapsOf(t, GradCAM, &p, in)
	}
}

// TestStraightThroughRefused: without the switch rounded activations have no derivative, and the error names
// it; with it, what is no pair has none either.
func TestStraightThroughRefused(t *testing.T) {
	_, err := stagetest.Try(InputXGradient, backward(t, "plain"), quantisedInput(t, nil))
	if err == nil || !strings.Contains(err.Error(), "backward: {quantize: straight-through}") {
		t.Errorf("the error is %v", err)
	}
	scaled := quantisedInput(t, func(m *onnx.Model) { // another scale than that of the QuantizeLinear
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
			onnx.FloatTensor("other", []float32{0.5}))
		for _, n := range m.Proto.Graph.Node {
			if n.OpType == "DequantizeLinear" && n.Input[0] == "/Clip_output_0" {
				n.Input[1] = "other"
			}
		}
	})
	_, err = stagetest.Try(InputXGradient, backward(t, "{quantize: straight-through}"), scaled)
	if err == nil || !strings.Contains(err.Error(), "DequantizeLinear") {
		t.Errorf("the error is %v", err)
	}
}
