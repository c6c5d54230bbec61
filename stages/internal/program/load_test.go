package program_test

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestLoad holds that a model's bytes are loaded when a slot sees it first, and again
// only to compile a program of it.
func TestLoad(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	d := modeltest.Model(t, model.ONNXParams{Path: filepath.Join(root, "experiments", "quickstart", "vgg.onnx"), Preset: "half"})
	bytes, loaded := d.Load, 0
	d.Load = func(i int) ([]byte, error) { loaded++; return bytes(i) }
	slot := stagetest.NewSlot()
	chunk := func(batch, want int) {
		t.Helper()
		n, err := program.Load(&stages.Env{Slot: slot, Ports: map[string][]stages.Data{"model": {d}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Forward(t.Context(), slot, batch); err != nil {
			t.Fatal(err)
		}
		if loaded != want {
			t.Errorf("batch %d: loaded %d times in all, not %d", batch, loaded, want)
		}
	}
	chunk(2, 1)
	chunk(2, 1)
	chunk(3, 2)
}
