package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// ChangeParams are the parameters of [Change].
type ChangeParams struct {
	Layer   string  `yaml:"layer" doc:"the layer that stands for the representation: middle, final, or the name of any value of the model's graph"`
	Epsilon float64 `yaml:"epsilon" doc:"what a value of 0 counts as where changes are divided by it" min:"0.000000000001" max:"1"`
}

// Change is the stage that tells how far a model moves between two images.
var Change = program.Stage(stages.Def[ChangeParams]{
	Name: "model/change",
	Doc: `how far a model moves from an image to an altered one

The denominators of score/relative-stability, which depend on no map: the relative change
of the model's input, ‖(x − x′)/x‖₂, the change of its outputs, ‖h − h′‖₂ of the logits, and
the relative change of a layer, ‖(z − z′)/z‖₂; and whether the prediction stays. The input
is the normalised image. Agarwal et al., "Rethinking Stability for Attribution-based
Explanations", 2022.`,
	Version:  1,
	Passes:   stages.Passes{Forward: "2"},
	Relation: stages.Each,
	Device:   true,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "images of the model's size"},
		{Name: "other", Type: stages.Images, Doc: "the same images, altered, as by perturb/noise"},
	},
	Outputs: []stages.Port{{Name: "changes", Type: stages.Changes,
		Doc: "the changes of input, outputs and layer, and whether the prediction stays"}},
	Defaults: ChangeParams{Layer: "final", Epsilon: 1e-6},
	Run:      func(ctx context.Context, p ChangeParams, e *stages.Env) error { return p.run(ctx, e) },
})

// A state is a model's input, outputs and a layer's values for one image.
type state struct{ input, outputs, layer []float32 }

func (p ChangeParams) run(ctx context.Context, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	layer, err := n.Layer(ctx, e.Slot, p.Layer)
	if err != nil {
		return err
	}
	f, err := n.Activated(ctx, e.Slot, layer, n.AtOnce(ctx, e.Slot, n.Fit(2*e.Len(), e.Batch)))
	if err != nil {
		return err
	}
	var states []state // of the images 2·i and their altered images 2·i+1 that are still needed
	for from := 0; from < 2*e.Len(); from += f.Batch {
		to := min(from+f.Batch, 2*e.Len())
		for k := from; k < to; k++ {
			port := []string{"images", "other"}[k%2]
			t, err := stages.DecodeTensor(e.In(port, k/2))
			if err == nil {
				err = n.Normalise(t, f.Image(k-from))
			}
			if err != nil {
				return fmt.Errorf("item %q: port %s: %w", e.Calls[k/2].ID, port, err)
			}
		}
		if err := f.Run(ctx); err != nil {
			return err
		}
		for k := from; k < to; k++ {
			states = append(states, state{slices.Clone(f.Image(k - from)), slices.Clone(f.Row(k - from)),
				slices.Clone(f.Value(k - from))})
			if len(states) == 2 {
				e.Put("changes", k/2, stages.NewTensor(p.between(n, states[0], states[1]), 4).Encode())
				e.Done(1)
				states = states[:0]
			}
		}
	}
	return nil
}

// between returns the changes from a state to another, and 1 if both predict one class.
func (p ChangeParams) between(n *program.Net, a, b state) []float64 {
	same := 0.0
	if slices.Index(a.outputs, slices.Max(a.outputs)) == slices.Index(b.outputs, slices.Max(b.outputs)) {
		same = 1
	}
	logits := func(s state) []float64 {
		out := make([]float64, len(s.outputs))
		for c := range out {
			out[c] = n.Logit(s.outputs, program.Target{Class: c, Minus: -1})
		}
		return out
	}
	return []float64{p.relative(a.input, b.input), distance(logits(a), logits(b)),
		p.relative(a.layer, b.layer), same}
}

// relative returns ‖(a − b)/a‖₂.
func (p ChangeParams) relative(a, b []float32) float64 {
	x, y := make([]float64, len(a)), make([]float64, len(a))
	for k, v := range a {
		by := float64(v)
		if v == 0 {
			by = p.Epsilon
		}
		x[k], y[k] = float64(v)/by, float64(b[k])/by
	}
	return distance(x, y)
}

// distance returns ‖a − b‖₂.
func distance(a, b []float64) float64 {
	sum := 0.0
	for k, v := range a {
		d := v - b[k]
		sum += float64(d * d)
	}
	return math.Sqrt(sum)
}
