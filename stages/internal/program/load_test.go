package program_test

import (
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestLoad holds that a model's bytes are loaded when a slot sees it first, and again only to compile a
// program of it.
func TestLoad(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	d := modeltest.Model(t,
		model.ONNXParams{Path: filepath.Join(root, "experiments", "quickstart", "vgg.onnx"), Preset: "half"})
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

// A forgetful slot closes what it shares before it's asked for again, as if room had been needed, and keeps
// the rest.
type forgetful struct {
	stages.Slot
	shared map[string]io.Closer
}

func (s forgetful) Share(key string, _ int64, make func() (io.Closer, error)) (io.Closer, error) {
	if c, ok := s.shared[key]; ok {
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
	c, err := make()
	if err == nil {
		s.shared[key] = c
	}
	return c, err
}

// TestLoadedAgain holds that a program whose session was closed, and whose memory wasn't, runs in the session
// that was opened since.
func TestLoadedAgain(t *testing.T) {
	slot := forgetful{threaded{1, stagetest.NewSlot()}, map[string]io.Closer{}}
	n := net(t, small(t, "means"))
	q := lower.Question{Rules: relevance.Derivative()}
	answers, derivatives := differentiate(t, n, slot, q, 2, 2)
	again, later := differentiate(t, n, slot, q, 2, 2)
	if !sameBits(again, answers) || !sameBits(later, derivatives) {
		t.Error("the answers or derivatives are others")
	}
	compare := func() []float32 {
		d, err := n.DeepLIFT(t.Context(), slot, lower.Question{}, false, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Batch {
			wave(i, d.Image(i))
			d.Explain(i, program.Target{Class: 0, Minus: -1})
		}
		d.Reference(make([]float32, n.Size()))
		if err := d.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(d.Multipliers(0))
	}
	if first := compare(); !sameBits(compare(), first) {
		t.Error("the multipliers are others")
	}
}
