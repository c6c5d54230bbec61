package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// An Accuracy says how a model does that is fed by a preset.
type Accuracy struct {
	Preset string
	Right  int // images whose label has the largest answer
	Images int
	Gap    float64 // the mean of how far the label's answer lies behind the largest
}

// Accuracies measures every preset on labelled images of the model's size. Labels that the model doesn't have
// are an error: they are numbers of another list of classes.
func (t *Trial) Accuracies(ctx context.Context, images [][]byte, labels []int64) ([]Accuracy, error) {
	for _, l := range labels {
		if l < 0 || l >= int64(t.Spec.Classes) {
			return nil, fmt.Errorf("a label is %d, and the model has the classes 0 to %d", l,
				t.Spec.Classes-1)
		}
	}
	m, err := modelfile.Decode(t.payload)
	if err != nil {
		return nil, err
	}
	batch := max(1, m.Spec.Batch)
	probes := map[string]*program.Probe{} // by the order of channels, which is the graph's
	defer func() {
		for _, p := range probes {
			p.Close()
		}
	}()
	var out []Accuracy
	for _, preset := range modelfile.Presets() {
		spec := m.Spec
		if err := fill(&spec, ONNXParams{Preset: preset.Name, Order: "auto"}); err != nil {
			return nil, err
		}
		if probes[spec.Order] == nil {
			if probes[spec.Order], err = program.NewProbe(modelfile.Model{Spec: spec, ONNX: m.ONNX},
				batch); err != nil {
				delete(probes, spec.Order)
				return nil, err
			}
		}
		a := Accuracy{Preset: preset.Name, Images: len(images)}
		fed := make([]float32, spec.Size()*batch)
		for from := 0; from < len(images); from += batch {
			some := images[from:min(from+batch, len(images))]
			for i, b := range some {
				image, err := stages.DecodeTensor(b)
				if err != nil {
					return nil, err
				}
				if err := spec.Normalise(image, fed[i*spec.Size():]); err != nil {
					return nil, err
				}
			}
			answers, err := probes[spec.Order].Answer(ctx, fed)
			if err != nil {
				return nil, err
			}
			for i := range some {
				a.add(answers.Data[i*spec.Classes:(i+1)*spec.Classes], labels[from+i])
			}
		}
		a.Gap /= float64(max(1, len(images)))
		out = append(out, a)
	}
	return out, nil
}

// add counts a model's answer to an image.
func (a *Accuracy) add(answer []float32, label int64) {
	largest := float32(math.Inf(-1))
	best := -1
	for class, v := range answer {
		if v > largest {
			largest, best = v, class
		}
	}
	if int64(best) == label {
		a.Right++
	}
	a.Gap += float64(largest - answer[label])
}

// fewest is how many images a model has to be right on: one or two may be luck.
const fewest = 3

// Best returns the measured preset with which the model is right most often, of equals the one whose labels
// lie nearest to the largest answer, and then the guess; false where none is clearly better than guessing:
// right on a few images, and more than twice as often.
func Best(measured []Accuracy, classes int, guess string) (Accuracy, bool) {
	if len(measured) == 0 {
		return Accuracy{}, false
	}
	best := slices.MinFunc(measured, func(a, b Accuracy) int {
		return cmp.Or(cmp.Compare(b.Right, a.Right), cmp.Compare(a.Gap, b.Gap),
			isnt(a.Preset, guess)-isnt(b.Preset, guess))
	})
	return best, best.Right >= fewest && best.Right*classes > 2*best.Images
}

func isnt(a, b string) int {
	if a == b {
		return 0
	}
	return 1
}
