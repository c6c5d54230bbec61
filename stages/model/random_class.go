package model

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// RandomClassParams are the parameters of [RandomClass], which has none.
type RandomClassParams struct{}

// RandomClass draws another class for every image.
var RandomClass = stages.New(stages.Def[RandomClassParams]{
	Name: "model/random-class",
	Doc: `another class for every image, drawn at random

Any class but the target, each as likely as the others; of a model with several heads, one
of the same head. Wired to the targets of a method it makes the random logit test: a map
that stays the same for another class doesn't explain the class. score/ssim and
score/rank-correlation compare the two maps. The draw depends on the experiment's seed
and the image. Sixt, Granz and Landgraf, "When Explanations Lie", ICML 2020, section 4.`,
	Version:  1,
	Relation: stages.Each,
	Seeded:   true,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier, whose classes are drawn from"},
		{Name: "images", Type: stages.Images, Doc: "the images"},
		{Name: "targets", Type: stages.Targets, Optional: true, Else: "model/predict",
			Doc: "the class that isn't drawn; default: the prediction for the original image"},
	},
	Outputs: []stages.Port{{Name: "targets", Type: stages.Targets, Doc: "the drawn class"}},
	Run: func(_ context.Context, _ RandomClassParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		for i := range e.Len() {
			t, err := n.Target(e.In("targets", i))
			if err == nil && n.PerHead() < 2 {
				err = fmt.Errorf("the model has no other class")
			}
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			first := n.First(t.Class)
			class := e.Rand("class", i).IntN(n.PerHead() - 1)
			if class >= t.Class-first {
				class++
			}
			other := []int64{int64(class)}
			if n.Heads > 0 {
				other = []int64{int64(class), -1, int64(first / n.PerHead())}
			}
			e.Put("targets", i, stages.NewTensor(other, len(other)).Encode())
			e.Done(1)
		}
		return nil
	},
})
