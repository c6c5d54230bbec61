package attribute

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestLayerNames checks that values are offered for a wrong layer and weights aren't, and that what a softmax
// of tokens makes isn't taken for feature maps.
func TestLayerNames(t *testing.T) {
	modeltest.Runtime(t)
	m := modeltest.Net(t, modeltest.Model(t, model.ONNXParams{Path: "../../experiments/quickstart/vit.onnx"}))
	_, err := m.Layer(t.Context(), stagetest.NewSlot(), "nowhere")
	var field *stages.FieldError
	if !errors.As(err, &field) || !slices.Contains(field.Names, "final") || len(field.Names) < 10 {
		t.Fatalf("%v offers %v", err, field)
	}
	softmax := ""
	for _, v := range field.Names {
		if strings.Contains(v, "weight") || strings.Contains(v, "bias") {
			t.Errorf("the weight %s is offered", v)
		}
		if strings.Contains(v, "Softmax") {
			softmax = v
		}
	}
	if _, err := m.Layer(t.Context(), stagetest.NewSlot(), softmax); err == nil ||
		!strings.Contains(err.Error(), "attention of tokens to tokens") {
		t.Errorf("layer %q: %v", softmax, err)
	}
}
