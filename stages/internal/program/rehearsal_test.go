package program_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// TestRehearsal checks that a rehearsed program has the shapes of the program, that it runs three times in
// each act, and that errors are those of a device.
func TestRehearsal(t *testing.T) {
	n := net(t, modeltest.Nets(t, false)["smallcnn"])
	var slot program.Rehearsal
	q := lower.Question{Rules: relevance.Derivative()}
	g, err := n.Gradient(t.Context(), &slot, q, 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{n.Channels, n.Height, n.Width}; g.Batch != 2 || !slices.Equal(g.Shape(), want) ||
		len(g.Row(1)) != n.Classes {
		t.Errorf("batch %d of shape %v, %d classes; want 2 of %v, %d", g.Batch, g.Shape(), len(g.Row(1)),
			want, n.Classes)
	}
	for range 2 {
		slot.Begin()
		for range 3 {
			if err := g.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := g.Run(t.Context()); !errors.Is(err, program.ErrRehearsed) {
			t.Errorf("the fourth run: %v", err)
		}
	}
	again, err := n.Gradient(t.Context(), &slot, q, 2)
	if err != nil || again.Program != g.Program {
		t.Errorf("the program is made twice: %v", err)
	}
	if _, err := n.Gradient(t.Context(), &slot,
		lower.Question{Layer: "nowhere", Rules: relevance.Derivative()}, 2); err == nil {
		t.Error("there is a backward pass to no value")
	}
	if err := slot.Close(); err != nil {
		t.Error(err)
	}
}
