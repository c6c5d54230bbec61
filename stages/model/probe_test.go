package model_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

// late is a context that is cancelled after a number of calls.
type late struct {
	context.Context
	left int
}

func (l *late) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelledProbe checks that cancelling never changes what a model is taken for: one that takes any
// batch, and a batch-dependent one that takes one image at a time.
func TestCancelledProbe(t *testing.T) {
	modeltest.Runtime(t)
	for want, change := range []func(m *onnx.Model){
		func(*onnx.Model) {},
		func(m *onnx.Model) {
			f := m.Fragment()
			mean := f.Op("ReduceMean", []string{"logits"}, onnx.Attr{Name: "axes", Value: []int64{0}})
			f.OpTo("centred", "Add", []string{"logits", mean})
			m.After(f)
			m.SetOutputs(onnx.Value{Name: "centred", Elem: onnxpb.TensorProto_FLOAT})
		},
	} {
		path := altered(t, "gapcnn", change)
		cancelled, whole := 0, 0
		for left := range 20 {
			trial, err := model.NewTrial(&late{t.Context(), left},
				model.ONNXParams{Path: path, Preset: "unit", Layout: "auto", Order: "auto", Kind: "auto"})
			switch {
			case errors.Is(err, context.Canceled):
				cancelled++
			case err != nil || trial.Spec.Batch != want:
				t.Errorf("cancelled when asked %d times: %v, batch %d instead of %d", left, err,
					trial.Spec.Batch, want)
			default:
				whole++
			}
		}
		if cancelled < 3 || whole == 0 {
			t.Errorf("cancelled %d times, %d times not", cancelled, whole)
		}
	}
}

// TestAnswersDiffer checks that a model whose number of answers depends on the image is rejected.
func TestAnswersDiffer(t *testing.T) {
	modeltest.Runtime(t)
	path := altered(t, "gapcnn", func(m *onnx.Model) {
		f := m.Fragment()
		flat := f.Op("Flatten", []string{"input"})
		positive := f.Op("Reshape",
			[]string{f.Op("Greater", []string{flat, f.Floats("zero", []float32{0}, 1)}),
				f.Ints("row", []int64{-1}, 1)})
		f.OpTo("some", "Compress", []string{flat, positive}, onnx.Attr{Name: "axis", Value: 1})
		m.After(f)
		m.SetOutputs(onnx.Value{Name: "some", Elem: onnxpb.TensorProto_FLOAT})
	})
	_, err := model.NewTrial(t.Context(),
		model.ONNXParams{Path: path, Preset: "unit", Layout: "auto", Order: "auto", Kind: "auto"})
	if err == nil || !strings.Contains(err.Error(), "for one image and") {
		t.Errorf("a model with as many answers as positive pixels: %v", err)
	}
}
