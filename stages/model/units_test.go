package model_test

import (
	"errors"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/internal/behaviour"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestUnits checks that each behaviour that may be chosen makes a net, of the size and the facts that
// dataset/units reads, and that sizes which no net has are errors of their parameter.
func TestUnits(t *testing.T) {
	modeltest.Runtime(t)
	for _, kind := range behaviour.Kinds() {
		p := &model.UnitsParams{Behaviour: kind, Grid: 4, Patch: 8, Seed: 3}
		r := stagetest.Run(t, model.Units, p, nil)
		net := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
		if s := modeltest.Spec(t, net); s.Height != 32 || s.Width != 32 || s.Classes != 2 {
			t.Errorf("%s: a net of %d×%d pixels and %d classes", kind, s.Height, s.Width, s.Classes)
		}
		images := stagetest.Run(t, dataset.Units, &dataset.UnitsParams{Count: 2, Seed: 1, Truth: "shapley"},
			map[string][]stages.Data{"model": {net}})
		if f := images.Facts["images"]; f["height"] != "32" || f["labels"] != "for\nagainst" {
			t.Errorf("%s: facts of images %v", kind, f)
		}
	}
	for field, p := range map[string]model.UnitsParams{"grid": {Grid: 5, Patch: 1},
		"patch": {Grid: 4, Patch: 12}} {
		var of *stages.FieldError
		if err := p.Validate(); !errors.As(err, &of) || of.Field != field {
			t.Errorf("%+v: %v, want an error of %s", p, err, field)
		}
	}
}
