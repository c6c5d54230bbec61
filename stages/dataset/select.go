package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// SelectParams are the parameters of [Select].
type SelectParams struct {
	Correct   bool     `yaml:"correct" doc:"keep only images whose label is predicted"`
	AtLeast   float64  `yaml:"at_least" doc:"keep only images whose predicted class has at least this probability" min:"0" max:"1"`
	Wrong     bool     `yaml:"wrong" key:"added" doc:"instead of correct: keep only images that are misclassified, by every model"`
	AtMost    float64  `yaml:"at_most" key:"added" doc:"keep only images whose predicted class has at most this probability; 0: any" min:"0" max:"1"`
	Classes   []string `yaml:"classes" key:"added" doc:"keep only images of these classes, by name or number: of their label, or without labels of the predicted class; default: all"`
	LeastSure int      `yaml:"least_sure" key:"added" doc:"keep at most so many images, those whose predicted class has the lowest probability, of several models the lowest mean; 0: all" min:"0" max:"100000000"`
	PerClass  int      `yaml:"per_class" doc:"keep at most so many images a class, the first in order; 0: all" min:"0" max:"100000000"`
	Count     int      `yaml:"count" doc:"keep at most so many images, the first in order; 0: all" min:"0" max:"100000000"`
}

// Select keeps the images of a data set on which models are right and sure, as Rao, Böhle and Schiele,
// "Towards Better Understanding Attribution Methods", CVPR 2022, choose those of their grids. Where over
// collapses axes on targets and probability, every cell has to agree. Where maps are wired, an image is lost
// if one of its maps is zero everywhere: the code of Walker, Simon, Chen and Ewetz, "Attribution Quality
// Metrics with Magnitude Alignment", IJCAI 2024, leaves such an image out for all methods.
//
// The criteria apply in the order correct or wrong, at_least, at_most, classes, maps, per_class, least_sure,
// count. What is kept has the id and the bytes that it had.
var Select = stages.New(stages.Def[SelectParams]{
	Name: "dataset/select",
	Doc: `images chosen by their predictions or classes

Keeps images that the model predicts correctly, with at least a given probability, and
of these the first of each class. With over: [model], every model has to agree. Labels,
masks and boxes of the kept images are passed on with them, unchanged. counts tells how
many images each criterion loses; if none is left, that's an error.

With maps, an image is dropped for all methods if one of its maps is zero everywhere, as
by the authors' code of MAS (Walker et al., "Attribution Quality Metrics with Magnitude
Alignment", IJCAI 2024); another of its class takes its place.

wrong: true keeps the images that are misclassified instead, at_most and least_sure those
of which the model isn't sure, and classes those of some classes. A misclassified image
has a label, and another class is predicted.

  photos: {uses: dataset/folder, with: {path: imagenet-val, resize: 256, crop: 224}}
  sure:
    uses: dataset/select
    in: {model: model, images: photos, labels: photos.labels}
    over: [model]
    with: {at_least: 0.99, per_class: 1, count: 1000}
  maps: {uses: attribute/saliency, in: {model: model, images: sure}}`,
	Version:  1,
	Relation: stages.Whole,
	Named:    true, // kept items keep their ids
	Inputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the images"},
		{Name: "labels", Type: stages.Labels, Doc: "their classes", Optional: true},
		{Name: "masks", Type: stages.Masks, Doc: "passed on", Optional: true},
		{Name: "boxes", Type: stages.Boxes, Doc: "passed on", Optional: true},
		{Name: "model", Type: stages.Model, Doc: "the classifier, if targets isn't wired", Optional: true},
		{Name: "targets", Type: stages.Targets, Doc: "predicted classes", Optional: true,
			Else: "model/predict"},
		{Name: "probability", Type: stages.Scores, Doc: "their probabilities", Optional: true,
			Else: "model/predict"},
		{Name: "maps", Type: stages.Maps, Doc: "an image of which one is zero everywhere is dropped",
			Optional: true, Added: true},
	},
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "the kept images"},
		{Name: "labels", Type: stages.Labels, Doc: "their classes"},
		{Name: "masks", Type: stages.Masks, Doc: "their masks"},
		{Name: "boxes", Type: stages.Boxes, Doc: "their boxes"},
		{Name: "counts", Type: stages.TableType, Doc: "how many images each criterion loses"},
	},
	Defaults: SelectParams{Correct: true},
	Check:    checkSelect,
	Facts: func(_ SelectParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		out := map[string]stages.Facts{}
		for _, port := range passed {
			if in[port] != nil {
				out[port] = in[port]
			}
		}
		return out, nil
	},
	Run:   runSelect,
	Hooks: func(p SelectParams) stages.Hooks { return stages.Hooks{Lacks: selectLacks, Most: p.most} },
})

// selectLacks reports that a port whose items are passed on gets none.
func selectLacks(port string, wired func(string) bool) error {
	if slices.Contains(passed, port) && !wired(port) {
		return fmt.Errorf("dataset/select passes on %s if they are wired to it", port)
	}
	return nil
}

// most returns how many of so many images are kept at most.
func (p SelectParams) most(in map[string]stages.Amount) int {
	n := in["images"].Items
	for _, most := range []int{p.Count, p.LeastSure} {
		if most > 0 && most < n {
			n = most
		}
	}
	return n
}

// passed are the ports whose items are passed on.
var passed = []string{"images", "labels", "masks", "boxes"}

func checkSelect(p SelectParams, wired func(string) bool) error {
	if err := p.checkSure(wired); err != nil {
		return err
	}
	predicted := p.Correct || p.Wrong || (p.PerClass > 0 || len(p.Classes) > 0) && !wired("labels")
	switch {
	case p.Wrong && !wired("labels"):
		return stages.BadField("wrong", "which images are misclassified isn't known without labels: wire "+
			"them")
	case p.Correct && !wired("labels"):
		return stages.BadField("correct", "which images are predicted correctly isn't known without labels: "+
			"wire them, or write correct: false")
	case predicted && !wired("targets") && !wired("model"):
		return errors.New("which classes are predicted isn't known: wire model or targets")
	}
	return nil
}

// checkSure rejects criteria about probabilities that aren't known, and those that leave no image.
func (p SelectParams) checkSure(wired func(string) bool) error {
	if p.AtMost > 0 && p.AtMost < p.AtLeast {
		return stages.BadField("at_most", "at_most %v is less than at_least %v: no image is left", p.AtMost,
			p.AtLeast)
	}
	for _, criterion := range []struct {
		name string
		set  bool
	}{{"at_least", p.AtLeast > 0}, {"at_most", p.AtMost > 0}, {"least_sure", p.LeastSure > 0}} {
		if criterion.set && !wired("probability") && !wired("model") {
			return stages.BadField(criterion.name, "how sure a model is isn't known: wire model or "+
				"probability")
		}
	}
	return nil
}

func runSelect(ctx context.Context, p SelectParams, e *stages.Env) error {
	for _, port := range passed {
		if len(e.Ports[port]) > 1 {
			return fmt.Errorf("%s differs along %q, and what is kept is one data set: wire %s of one cell",
				port, e.Ports[port][0].Coord[0].Axis, port)
		}
	}
	s, err := newSelection(ctx, p, e)
	if err != nil {
		return err
	}
	criteria := s.criteria()
	for k := range criteria {
		c := &criteria[k]
		err := c.apply(ctx, func(i int) {
			if s.keep[i] {
				s.keep[i] = false
				c.lost++
			}
		})
		if err != nil {
			return err
		}
	}
	kept := s.len()
	counts := describeLoss(criteria, len(s.keep), kept)
	if kept == 0 {
		return fmt.Errorf("no image is left: %s", counts)
	}
	if kept < len(s.keep) {
		e.Warn("%s", counts)
	}
	e.Set("counts", lossTable(criteria, len(s.keep)).Encode())
	for _, port := range passed {
		if err := s.pass(port); err != nil {
			return err
		}
	}
	return nil
}

// describeLoss describes how many images are kept, and why the others aren't.
func describeLoss(criteria []criterion, all, kept int) string {
	text := fmt.Sprintf("%d of %d images are kept", kept, all)
	for _, c := range criteria {
		if c.lost > 0 {
			text += fmt.Sprintf(", %d are %s", c.lost, c.why)
		}
	}
	return text
}

// lossTable lists the criteria in the order in which they apply.
func lossTable(criteria []criterion, all int) stages.Table {
	t := stages.Table{Title: "Choice of images", Keys: []string{"criterion"}, Ranked: true,
		Numbers: []stages.Column{{Name: "lost", Unit: "images"}, {Name: "left", Unit: "images"}}}
	row := func(name string, lost, left int) {
		t.Rows = append(t.Rows, stages.Row{Keys: []string{name},
			Numbers: []stages.Number{stages.Number(lost), stages.Number(left)}})
	}
	row("all images", 0, all)
	for _, c := range criteria {
		if !c.absent {
			all -= c.lost
			row(c.name, c.lost, all)
		}
	}
	return t
}
