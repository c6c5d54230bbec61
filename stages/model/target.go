package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/target"
)

// TargetParams are the parameters of [Target].
type TargetParams struct {
	Target  string `yaml:"target" doc:"the expression: an output or a part of it, what functions make of them, or a preset such as segmentation(3)"`
	Vectors string `yaml:"vectors" doc:"a .npy file with what the word vectors is in the expression: a vector [D], or K of them [K, D]" file:"read"`
}

// Validate refuses what isn't an expression.
func (p TargetParams) Validate() error {
	switch {
	case p.Target == "":
		return stages.BadField("target", "target is required: an expression, such as sum(output[3])")
	case !target.Is(p.Target):
		return stages.BadField("target", "target: %q is no expression: a class is the parameter target of "+
			"methods and of model/predict", p.Target)
	}
	if err := program.CheckTarget(p.Target); err != nil {
		return err
	}
	if x, err := target.Parse(p.Target); err == nil && p.Vectors != "" && !x.Reads("vectors") {
		return stages.BadField("vectors", "vectors: the expression %s doesn't read them", p.Target)
	}
	return nil
}

// Target is the stage that makes a model whose answer is an expression.
var Target = stages.New(stages.Def[TargetParams]{
	Name: program.TargetStage,
	Doc: `a model whose answer is an expression of its outputs

The answer is one number an image. Whatever reads it explains the expression, or records its value: maps, curves and scores are of
the same number. Methods and curves make it themselves where their parameter target is an
expression. Outputs are called by their names, output is the only one or that with the
classes, and the axis of images isn't counted:

  logits[3]                                        one element
  mean(logits[3])                                  of a class's map
  sum(logits[3] * frozen(argmax(logits, 0) == 3))  where the original image was taken for it
  cosine(output, other(output))                    with the image on model/predict's port other
  detection(output[:, :4], output[:, 4:])          a preset, which is an expression itself

frozen(…) is a value for the original image, which stays when pixels are replaced, and so are
label, predicted, predicted:2, mask and other(…); argmax, comparisons, sign, nearest and resize
have no derivative, and need it. "runexp inspect" prints a model's outputs and expressions of
them; docs/targets.md has all functions and presets.`,
	Version:  target.Language,
	Relation: stages.Whole,
	Inputs:   []stages.Port{{Name: "model", Type: stages.Model, Doc: "the model"}},
	Outputs: []stages.Port{{Name: "model", Type: stages.Model, Base: "model",
		Doc: "the model of the expression; facts: height, width, channels, target, value_unit, low, high"}},
	Sources: func(p TargetParams, _ []string) ([]stages.Source, error) {
		if p.Vectors == "" {
			return nil, nil
		}
		return []stages.Source{{ID: "vectors", File: p.Vectors}}, nil
	},
	Run: func(_ context.Context, p TargetParams, e *stages.Env) error {
		n, err := program.LoadAny(e)
		if err != nil {
			return err
		}
		m, h, err := p.made(n, e.Slot, e.Facts("model")["labels"])
		if err != nil {
			return err
		}
		payload, err := m.Encode()
		if err != nil {
			return err
		}
		e.Set("model", payload)
		number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		e.SetFacts("model", stages.Facts{
			"height": strconv.Itoa(m.Spec.Height), "width": strconv.Itoa(m.Spec.Width),
			"channels": strconv.Itoa(m.Spec.Channels), "ext": "runexp-model", program.TargetFact: p.Target,
			program.UnitFact: h.Unit(), program.LowFact: number(h.Low), program.HighFact: number(h.High),
		})
		return nil
	},
})

// made returns the model, given the names of n's classes.
func (p TargetParams) made(n *program.Net, slot stages.Slot, names string) (modelfile.Model, *target.Head,
	error) {
	x := program.Explained{Target: p.Target}
	if names != "" && names != program.AnyNames {
		x.Names = strings.Split(names, "\n")
	}
	if p.Vectors != "" {
		a, err := p.readVectors()
		if err != nil {
			return modelfile.Model{}, nil, stages.BadField("vectors", "vectors: %w", err)
		}
		x.Vectors, x.Shape = a.Float32s(), a.Shape
	}
	return n.Made(slot, x)
}

// maxVectors limits the file of vectors.
const maxVectors = 1 << 28

func (p TargetParams) readVectors() (npy.Array, error) {
	b, err := stages.ReadFile(p.Vectors, maxVectors)
	if err != nil {
		return npy.Array{}, err
	}
	a, err := npy.Decode(b)
	if err == nil && (len(a.Shape) < 1 || len(a.Shape) > 2 || a.Len() == 0) {
		err = fmt.Errorf("an array of shape %v is neither a vector nor a list of vectors", a.Shape)
	}
	if err == nil {
		k := slices.IndexFunc(a.Float64s(), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
		if k >= 0 {
			err = fmt.Errorf("number %d is %v", k, a.Float64s()[k])
		}
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", p.Vectors, err)
	}
	return a, nil
}
