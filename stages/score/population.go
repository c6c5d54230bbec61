package score

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// A population is the maps of all images, with the classes that the model predicts for them: what a score
// needs that compares an image with the others of equal or similar explanation.
type population struct {
	items   []stages.Item
	classes []int64
	maps    stages.Data
	values  string
	pixels  int // of each map, from the first one on
	block   int // how many maps are in memory at once; 0: as many as have held numbers
}

// populationInputs are the ports of a population.
func populationInputs() []stages.Port {
	return []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of all images"},
		{Name: "targets", Type: stages.Targets,
			Doc: "the classes predicted for the images, of model/predict"},
	}
}

// newPopulation reads the classes, and pairs them with the maps by the images' names.
func newPopulation(ctx context.Context, e *stages.Env, values string) (*population, error) {
	if n := len(e.Ports["maps"]); n != 1 {
		return nil, fmt.Errorf("the maps are of %d cells: a score of images compares those of one", n)
	}
	predicted := map[string]int64{}
	for _, cell := range e.Ports["targets"] {
		for m, err := range cell.All(ctx) {
			if err != nil {
				return nil, err
			}
			if predicted[m.ID], err = class(m.Data); err != nil {
				return nil, fmt.Errorf("item %q: prediction: %w", m.ID, err)
			}
		}
	}
	p := &population{maps: e.Ports["maps"][0], values: values}
	for i := range p.maps.Items.Len() {
		item, err := p.maps.Items.At(i)
		if err != nil {
			return nil, err
		}
		class, known := predicted[item.ID]
		if !known {
			return nil, fmt.Errorf("item %q has a map and no prediction", item.ID)
		}
		p.items, p.classes = append(p.items, item), append(p.classes, class)
	}
	return p, nil
}

// relevance returns map i divided by its largest magnitude, nil if it has no relevance or isn't finite.
func (p *population) relevance(ctx context.Context, i int) ([]float64, int, error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	payload, err := p.maps.Load(i)
	if err != nil {
		return nil, 0, err
	}
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, 0, fmt.Errorf("item %q: %w", p.items[i].ID, err)
	}
	v, _, width, err := metric.Values(t, p.values)
	if err == nil && p.pixels != 0 && len(v) != p.pixels {
		err = errors.New("the maps have different sizes")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("item %q: %w", p.items[i].ID, err)
	}
	p.pixels = len(v)
	if !metric.Relevance(v) {
		return nil, width, nil
	}
	largest := 0.0
	for _, x := range v {
		largest = max(largest, math.Abs(x))
	}
	for k := range v {
		v[k] /= largest
	}
	return v, width, nil
}

// A tally counts the other images of the same explanation, and those of them with the same predicted class.
type tally struct{ alike, agree []int }

func newTally(n int) tally { return tally{make([]int, n), make([]int, n)} }

// pair counts images i and k as alike.
func (p *population) pair(t tally, i, k int) {
	t.alike[i]++
	t.alike[k]++
	if p.classes[i] == p.classes[k] {
		t.agree[i]++
		t.agree[k]++
	}
}

// emit emits the share of the alike images that agree, and the share of the others that are alike.
func (p *population) emit(e *stages.Env, t tally, defined []bool) {
	for i, item := range p.items {
		score, alike := math.NaN(), math.NaN()
		if defined[i] && len(p.items) > 1 {
			alike = float64(t.alike[i]) / float64(len(p.items)-1)
		}
		if t.alike[i] > 0 {
			score = float64(t.agree[i]) / float64(t.alike[i])
		}
		e.Emit("scores", item.ID, item.Origin, stages.Scalar(score))
		e.Emit("alike", item.ID, item.Origin, stages.Scalar(alike))
		e.Done(1)
	}
}

// populationFacts are the measures of what emit emits.
func populationFacts() map[string]stages.Facts {
	scores := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 2e-2,
		ItemTolerance: 0.5}
	alike := scores
	alike.Direction = stages.None
	return map[string]stages.Facts{"scores": scores.Facts(nil), "alike": alike.Facts(nil)}
}

// populationOutputs are the ports of what emit emits.
func populationOutputs() []stages.Port {
	return []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "share of the alike images with the same class, in [0,1]"},
		{Name: "alike", Type: stages.Scores, Doc: "share of the other images that are alike, in [0,1]"},
	}
}
