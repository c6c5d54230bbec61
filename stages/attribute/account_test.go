package attribute

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestIncomplete holds that a map whose sum misses the difference that it explains gives a warning with both,
// whatever operator without a slope is the cause, and that the same net without it gives none.
func TestIncomplete(t *testing.T) {
	float := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}
	for name, tt := range map[string]struct {
		method stages.Stage
		end    func(f *onnx.Fragment, m *onnx.Model, z string) string
		warned bool
	}{
		"DeepLIFT": {DeepLIFT, func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			return f.Op("Asinh", []string{z})
		}, false},
		"DeepLIFT, Round": {DeepLIFT, func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			return f.Op("Add", []string{f.Op("Mul", []string{z, f.Floats("some", []float32{0.2})}),
				f.Op("Round", []string{z})})
		}, true},
		"DeepLIFT, a mask": {DeepLIFT, func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			mask := f.Op("Cast", []string{f.Op("Greater", []string{z, f.Floats("zero", []float32{0})})},
				float)
			return f.Op("Add", []string{f.Op("Mul", []string{z, f.Floats("little", []float32{0.02})}), mask})
		}, true},
		"integrated gradients": {IntegratedGradients, func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			return f.Op("Asinh", []string{z})
		}, false},
		"integrated gradients, Floor": {IntegratedGradients,
			func(f *onnx.Fragment, _ *onnx.Model, z string) string {
				return f.Op("Add", []string{f.Op("Mul", []string{z, f.Floats("little", []float32{0.02})}),
					f.Op("Floor", []string{z})})
			}, true},
	} {
		in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
		in["model"] = []stages.Data{statedLogits(t, tt.end)}
		r := stagetest.Run(t, tt.method, nil, in)
		if tt.warned != (len(r.Warnings) > 0) || tt.warned && !strings.Contains(r.Warnings[0],
			"the map is not complete: its values sum to ") {
			t.Errorf("%s: warnings %q", name, r.Warnings)
		}
	}
	for _, tt := range []struct {
		excess, response, reference float64
		want                        bool
	}{{0, 1, 0, false}, {0.05, 1, 0, false}, {-0.2, 1, 0, true}, {-2, 1, 0, true}, {1e-6, 5, 5, false},
		{1, 5, 5, true}, {math.NaN(), 1, 0, false}} {
		if incomplete(tt.excess, tt.response, tt.reference) != tt.want {
			t.Errorf("%v: incomplete %t", tt, !tt.want)
		}
	}
}

// statedLogits returns smallcnn with an end whose output is stated to be logits.
func statedLogits(t *testing.T, end func(f *onnx.Fragment, m *onnx.Model, z string) string) stages.Data {
	t.Helper()
	m, err := onnx.ReadFile(modeltest.OfficialPath(t, "smallcnn"))
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fragment()
	out := end(f, m, m.Outputs()[0].Name)
	m.After(f)
	m.SetOutputs(onnx.Value{Name: out, Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t,
		model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Kind: "logits"})
}
