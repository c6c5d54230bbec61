package registry

import (
	"context"

	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// An Accuracy says how a model does that is fed by a preset.
type Accuracy = model.Accuracy

// measured is how many photographs presets are measured on: enough to tell them apart, and
// few enough for seconds.
const measured = 12

// Measure measures every preset of a model on labelled photographs of a folder. Best is the
// preset to take, "" where none makes the model right more than twice as often as guessing.
func Measure(ctx context.Context, file string, l Look, x *Inspection, folder string) (all []Accuracy, best string, err error) {
	images, labels, err := dataset.Sample(folder, x.Feed.Height, x.Feed.Width, measured)
	if err != nil || len(images) == 0 || x.Feed.Classes < 2 {
		return nil, "", err
	}
	p := *model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Input, p.Output = file, l.Input, l.Output
	if x.OpenSize || l.Size != "" {
		p.Size.H, p.Size.W = x.Feed.Height, x.Feed.Width
	}
	t, err := model.NewTrial(ctx, p)
	if err != nil {
		return nil, "", err
	}
	defer t.Close()
	if all, err = t.Accuracies(ctx, images, labels); err != nil {
		return nil, "", err
	}
	if b, ok := model.Best(all, x.Feed.Classes, guess(x.Inspection)); ok {
		best = b.Preset
	}
	return all, best, nil
}
