package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// SelectParams are the parameters of [Select].
type SelectParams struct {
	Correct  bool    `yaml:"correct" doc:"keep only images whose label is predicted"`
	AtLeast  float64 `yaml:"at_least" doc:"keep only images whose predicted class has at least this probability" min:"0" max:"1"`
	PerClass int     `yaml:"per_class" doc:"keep at most so many images a class, the first in order; 0: all" min:"0" max:"100000000"`
	Count    int     `yaml:"count" doc:"keep at most so many images, the first in order; 0: all" min:"0" max:"100000000"`
}

// Select keeps the images of a data set on which models are right and sure, as Rao, Böhle and Schiele,
// "Towards Better Understanding Attribution Methods", CVPR 2022, choose those of their grids. Where over
// collapses axes on targets and probability, every cell has to agree. Where maps are wired, an image is lost
// if one of its maps is zero everywhere: the code of Walker, Simon, Chen and Ewetz, "Attribution Quality
// Metrics with Magnitude Alignment", IJCAI 2024, leaves such an image out for all methods.
//
// The criteria apply in the order correct, at_least, maps, per_class, count. What is kept has the id and the
// bytes that it had.
var Select = stages.New(stages.Def[SelectParams]{
	Name: "dataset/select",
	Doc: `images on which models are right and sure

Keeps images that the model predicts correctly, with at least a given probability, and
of these the first of each class. With over: [model], every model has to agree. Labels,
masks and boxes of the kept images are passed on with them, unchanged. counts tells how
many images each criterion loses; if none is left, that's an error.

With maps, an image is dropped for all methods if one of its maps is zero everywhere, as
by the authors' code of MAS (Walker et al., IJCAI 2024); another of its class takes its place.

  photos: {uses: dataset/folder, with: {path: imagenet-val, resize: 256, crop: 224}}
  sure:
    uses: dataset/select
    in: {model: model, images: photos, labels: photos.labels}
    over: [model]
    with: {at_least: 0.99, per_class: 1, count: 1000}
  maps: {uses: attribute/saliency, in: {model: model, images: sure}}`,
	Version:  1,
	Relation: stages.Whole,
	Named:    true, // what is kept has its id
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
	Lacks: func(_ SelectParams, port string, wired func(string) bool) error {
		if slices.Contains(passed, port) && !wired(port) {
			return fmt.Errorf("dataset/select passes on %s if they are wired to it", port)
		}
		return nil
	},
	Facts: func(_ SelectParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		out := map[string]stages.Facts{}
		for _, port := range passed {
			if in[port] != nil {
				out[port] = in[port]
			}
		}
		return out, nil
	},
	Most: func(p SelectParams, in map[string]stages.Amount) int {
		if n := in["images"].Items; p.Count == 0 || n < p.Count {
			return n
		}
		return p.Count
	},
	Run: runSelect,
})

// passed are the ports whose items are passed on.
var passed = []string{"images", "labels", "masks", "boxes"}

func checkSelect(p SelectParams, wired func(string) bool) error {
	predicted := p.Correct || p.PerClass > 0 && !wired("labels")
	switch {
	case p.Correct && !wired("labels"):
		return stages.BadField("correct", "which images are predicted correctly isn't known without labels: "+
			"wire them, or write correct: false")
	case predicted && !wired("targets") && !wired("model"):
		return errors.New("which classes are predicted isn't known: wire model or targets")
	case p.AtLeast > 0 && !wired("probability") && !wired("model"):
		return stages.BadField("at_least", "how sure a model is isn't known: wire model or probability")
	}
	return nil
}

// A criterion counts the images that it loses.
type criterion struct {
	name   string
	why    string // what the images are that it loses
	absent bool   // no row of the table tells of it
	lost   int
}

func runSelect(ctx context.Context, p SelectParams, e *stages.Env) error {
	images := e.Ports["images"]
	for _, port := range passed {
		if len(e.Ports[port]) > 1 {
			return fmt.Errorf("%s differs along %q, and what is kept is one data set: wire %s of one cell",
				port, e.Ports[port][0].Coord[0].Axis, port)
		}
	}
	keep := make([]bool, images[0].Items.Len())
	at := make(map[string]int, len(keep)) // by id
	for i := range keep {
		item, err := images[0].Items.At(i)
		if err != nil {
			return err
		}
		keep[i], at[item.ID] = true, i
	}
	var labels []int64
	if e.Wired("labels") {
		var err error
		if labels, err = numbersOf(ctx, e.Ports["labels"][0], "labels", at); err != nil {
			return err
		}
	}
	criteria := []criterion{
		{name: "correct", why: "misclassified"},
		{name: "at_least", why: "below the probability " + strconv.FormatFloat(p.AtLeast, 'g', -1, 64)},
		{name: "maps", why: "explained by a map of zeros", absent: !e.Wired("maps")},
		{name: "per_class", why: fmt.Sprintf("beyond %d a class", p.PerClass)},
		{name: "count", why: fmt.Sprintf("beyond %d", p.Count)},
	}
	drop := func(i, k int) {
		if keep[i] {
			keep[i] = false
			criteria[k].lost++
		}
	}
	var predicted []int64 // by the first cell
	for _, d := range e.Ports["targets"] {
		classes, err := numbersOf(ctx, d, "targets", at)
		if err != nil {
			return err
		}
		if predicted == nil {
			predicted = classes
		}
		for i := range keep {
			if p.Correct && (labels == nil || classes[i] < 0 || classes[i] != labels[i]) {
				drop(i, 0)
			}
		}
	}
	for _, d := range e.Ports["probability"] {
		if p.AtLeast == 0 {
			break
		}
		sure := make([]float64, len(keep))
		for i := range sure {
			sure[i] = math.NaN()
		}
		err := eachAt(ctx, d, at, func(i int, payload []byte) (err error) {
			sure[i], err = stages.ScalarOf(payload)
			return err
		})
		if err != nil {
			return err
		}
		for i, x := range sure {
			if !(x >= p.AtLeast) {
				drop(i, 1)
			}
		}
	}
	for _, d := range e.Ports["maps"] {
		err := eachAt(ctx, d, at, func(i int, payload []byte) error {
			t, err := stages.DecodeTensor(payload)
			if err == nil && !slices.ContainsFunc(t.Float64s(), func(v float64) bool { return v != 0 }) {
				drop(i, 2)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if labels == nil {
		labels = predicted
	}
	taken, kept := map[int64]int{}, 0
	for i := range keep {
		if !keep[i] {
			continue
		}
		if p.PerClass > 0 {
			if taken[labels[i]]++; taken[labels[i]] > p.PerClass {
				drop(i, 3)
				continue
			}
		}
		if kept++; p.Count > 0 && kept > p.Count {
			drop(i, 4)
			kept--
		}
	}
	counts := describeLoss(criteria, len(keep), kept)
	if kept == 0 {
		return fmt.Errorf("no image is left: %s", counts)
	}
	if kept < len(keep) {
		e.Warn("%s", counts)
	}
	e.Set("counts", lossTable(criteria, len(keep)).Encode())
	for _, port := range passed {
		for _, d := range e.Ports[port] {
			for i := range d.Items.Len() {
				item, err := d.Items.At(i)
				if err != nil {
					return err
				}
				if k, ok := at[item.ID]; ok && keep[k] {
					if err := e.Pass(port, port, i); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// eachAt calls use with the payloads of a port and the positions of the images that they belong to.
func eachAt(ctx context.Context, d stages.Data, at map[string]int, use func(i int,
	payload []byte) error) error {
	for m, err := range d.All(ctx) {
		if err != nil {
			return err
		}
		i, ok := at[m.ID]
		if !ok {
			if i, ok = at[m.Origin]; !ok {
				continue
			}
		}
		if err := use(i, m.Data); err != nil {
			return fmt.Errorf("item %q: %w", m.ID, err)
		}
	}
	return nil
}

// numbersOf returns the classes on a port by image, -1 for an image without one.
func numbersOf(ctx context.Context, d stages.Data, port string, at map[string]int) ([]int64, error) {
	classes := make([]int64, len(at))
	for i := range classes {
		classes[i] = -1
	}
	return classes, eachAt(ctx, d, at, func(i int, payload []byte) error {
		t, err := stages.DecodeTensor(payload)
		if err != nil {
			return err
		}
		if t.DType != stages.I64 || t.Len() != 1 {
			return fmt.Errorf("%s: %s of shape %v isn't one class", port, t.DType, t.Shape)
		}
		classes[i] = t.Int64s()[0]
		return nil
	})
}

// describeLoss tells how many images are kept, and what became of the others.
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
