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

// An Accuracy is the result of a model on images normalised by a preset.
type Accuracy struct {
	Preset  string
	Correct int // images whose label has the largest answer
	Images  int
	Gap     float64 // mean difference between the largest answer and the label's
}

// Accuracies measures every preset on labelled images of the model's size. It returns an error for a label
// outside the model's classes, which belongs to another list of classes.
func (t *Trial) Accuracies(ctx context.Context, images [][]byte, labels []int64) ([]Accuracy, error) {
	for _, l := range labels {
		if l < 0 || l >= int64(t.Spec.Classes) {
			return nil, fmt.Errorf("label %d isn't one of the model's classes 0 to %d", l,
				t.Spec.Classes-1)
		}
	}
	payload, err := t.model.Load(0)
	if err != nil {
		return nil, err
	}
	m, err := modelfile.Decode(payload)
	if err != nil {
		return nil, err
	}
	batch := max(1, m.Spec.Batch)
	probes := map[string]*program.Probe{} // by channel order, on which the graph depends
	defer func() {
		for _, p := range probes {
			p.Close()
		}
	}()
	var out []Accuracy
	for _, preset := range modelfile.Presets() {
		spec := m.Spec
		if err := setPreprocessing(&spec, ONNXParams{Preset: preset.Name, Order: "auto"}); err != nil {
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

// add adds a model's answer to an image.
func (a *Accuracy) add(answer []float32, label int64) {
	largest := float32(math.Inf(-1))
	best := -1
	for class, v := range answer {
		if v > largest {
			largest, best = v, class
		}
	}
	if int64(best) == label {
		a.Correct++
	}
	a.Gap += float64(largest - answer[label])
}

// minCorrect is the number of images that must be classified correctly: one or two may be chance.
const minCorrect = 3

// Best returns the preset with the most correct images, among equals the one with the smallest gap, then
// guess. It returns false if none is clearly better than chance: at least minCorrect images, and more than
// twice the expected number.
func Best(measured []Accuracy, classes int, guess string) (Accuracy, bool) {
	if len(measured) == 0 {
		return Accuracy{}, false
	}
	best := slices.MinFunc(measured, func(a, b Accuracy) int {
		return cmp.Or(cmp.Compare(b.Correct, a.Correct), cmp.Compare(a.Gap, b.Gap),
			differs(a.Preset, guess)-differs(b.Preset, guess))
	})
	return best, best.Correct >= minCorrect && best.Correct*classes > 2*best.Images
}

func differs(a, b string) int {
	if a == b {
		return 0
	}
	return 1
}
