package score

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// GAEParams are the parameters of [GAE].
type GAEParams struct {
	Order   string `yaml:"order" axis:"masked_maps" doc:"the collapsed axis of masked_maps that tells morf from lerf"`
	Step    string `yaml:"step" axis:"masked_maps" doc:"the collapsed axis of masked_maps whose ids are the steps of the masking"`
	Variant string `yaml:"variant" doc:"paper: a map without positive relevance has no score; official: it counts as zero everywhere" choices:"paper|official"`
}

// GAE is Global Attribution Evaluation, after Vukadin, Afrić, Šilić and Delač, "Advancing Attribution-Based
// Neural Network Explainability through Relative Absolute Magnitude Layer-Wise Relevance Propagation and
// Multi-Component Evaluation", 2024, section 3.2, equations 13 to 18.
//
// Of each map the positive part counts, over its largest value. A map [H,W] counts the same for every channel
// of the image.
var GAE = stages.New(stages.Def[GAEParams]{
	Name: "score/gae",
	Doc: `local consistency times contrastiveness of a mosaic

Faithfulness is the share of a map's relevance where the impact is positive minus that
where it is negative; robustness says how closely the map changes as the output does
while the image is masked. Their mean, if positive, is the local consistency.
Contrastiveness is the relevance in a mosaic, weighted by its scoring map. The total is
the product. A constant map has a robustness of −1 and a total of 0.

  gae:
    uses: score/gae
    in: {maps: maps, masked_maps: masked-maps, mosaic_maps: mosaic-maps, outputs: masking.outputs,
         impact: masking.impact, scoring: mosaics.scoring}
    over: [order, step]

Maps and their masked ones are of mosaics.positives (mosaic/gae), masked by
perturb/gradient-masking. Vukadin et al., 2024, section 3.2.`,
	Definition: stages.Definition{
		Formula: "faithfulness LC_F = Σ sign(I)·A / Σ A with the impact I of " +
			"perturb/gradient-masking; robustness LC_R = 1 − 2·d(dᴬ, dᵒ) with dᴬₜ = d(A, A_MoRF,ₜ) − d(A, " +
			"A_LeRF,ₜ), dᵒₜ = (o_LeRF,ₜ − o_MoRF,ₜ)/o₀ and d(u, v) = ‖u − v‖₁/(‖u‖₁ + ‖v‖₁); consistency " +
			"LC = max((LC_F + LC_R)/2, 0); contrastiveness C = max(Σ A_mosaic·S / Σ A_mosaic, 0) with the " +
			"scoring map S; total = LC·C; A is a⁺ over its largest value",
		Unit: "an element of the image: a channel of a pixel",
		Operator: "elements become 0 after normalisation, by their impact; images become quadrants of " +
			"a mosaic",
		Response: "the explained class's logit o, and the method's maps of the masked images and of " +
			"the mosaic",
		Reference:   "the map of the unmasked image, and the opposite order; the scoring map",
		Aggregation: "sums over elements and steps; the product of two parts",
		Randomness:  "none, besides that of the mosaics",
		Undefined: "each part where a denominator is 0: a map without positive relevance, an unmasked " +
			"output of 0, outputs and maps that don't differ between the orders; never with variant: " +
			"official, which adds 1e-9; and for a map with a value that isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the unmasked images"},
		{Name: "masked_maps", Type: stages.Maps, Over: true,
			Doc: "maps of the masked images, at every step of both orders"},
		{Name: "mosaic_maps", Type: stages.Maps, Doc: "maps of the mosaics"},
		{Name: "outputs", Type: stages.Curves, Doc: "the outputs of perturb/gradient-masking"},
		{Name: "impact", Type: stages.Maps, Doc: "its impact"},
		{Name: "scoring", Type: stages.Maps, Doc: "the scoring maps of mosaic/gae"},
	},
	Outputs: []stages.Port{
		{Name: "total", Type: stages.Scores, Doc: "local consistency times contrastiveness, in [0,1]"},
		{Name: "consistency", Type: stages.Scores,
			Doc: "LC: the mean of robustness and faithfulness, if positive"},
		{Name: "contrastiveness", Type: stages.Scores,
			Doc: "C: relevance in the mosaic by its worth, if positive"},
		{Name: "faithfulness", Type: stages.Scores, Doc: "LC_F, in [-1,1]"},
		{Name: "robustness", Type: stages.Scores, Doc: "LC_R, in [-1,1]"},
	},
	Defaults: GAEParams{Order: "order", Step: "step", Variant: paper},
	Variants: []stages.Variant{{
		Item: "maps without positive relevance", Default: paper,
		Differs: "the paper's equations divide by zero, so that the scores are undefined; the code adds " +
			"1e-9 to each denominator, which gives 0 for faithfulness and contrastiveness, and to the " +
			"original output",
		Golden: "gae",
	}},
	Facts: func(p GAEParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkGAEOutputs(in); err != nil {
			return nil, err
		}
		m := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3,
			ItemTolerance: orderJump, Variant: tag(p.Variant)}
		signed := m
		signed.Low = -1
		return map[string]stages.Facts{
			"total": m.Facts(nil), "consistency": m.Facts(nil), "contrastiveness": m.Facts(nil),
			"faithfulness": signed.Facts(nil), "robustness": signed.Facts(nil),
		}, nil
	},
	Run: func(_ context.Context, p GAEParams, e *stages.Env) error {
		for i := range e.Len() {
			if err := p.put(e, i); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Done(1)
		}
		return nil
	},
})

// checkGAEOutputs refuses curves other than the outputs of two sequences.
func checkGAEOutputs(in map[string]stages.Facts) error {
	if r := in["outputs"]["responses"]; r != "morf,lerf" {
		return fmt.Errorf("the input \"outputs\" needs the outputs of perturb/gradient-masking, "+
			"not curves of %q", r)
	}
	return nil
}

// put puts the scores of item i.
func (p GAEParams) put(e *stages.Env, i int) error {
	original, err := p.peak(e.In("maps", i))
	if err != nil {
		return fmt.Errorf("maps: %w", err)
	}
	impact, err := weights(e.In("impact", i), original)
	if err != nil {
		return fmt.Errorf("impact: %w", err)
	}
	for k, v := range impact {
		impact[k] = float64(cmp.Compare(v, 0))
	}
	mosaic, err := p.peak(e.In("mosaic_maps", i))
	if err != nil {
		return fmt.Errorf("mosaic_maps: %w", err)
	}
	scoring, err := weights(e.In("scoring", i), mosaic)
	if err != nil {
		return fmt.Errorf("scoring: %w", err)
	}
	s, err := p.sequences(e, i, original)
	if err != nil {
		return err
	}
	robustness := s.robustness(p.epsilon())
	faithfulness := metric.Worth(original.Float64s(), impact, p.epsilon())
	consistency := max(0, (robustness+faithfulness)/2)
	contrast := max(0, metric.Worth(mosaic.Float64s(), scoring, p.epsilon()))
	e.Put("total", i, stages.Scalar(consistency*contrast))
	e.Put("consistency", i, stages.Scalar(consistency))
	e.Put("contrastiveness", i, stages.Scalar(contrast))
	e.Put("faithfulness", i, stages.Scalar(faithfulness))
	e.Put("robustness", i, stages.Scalar(robustness))
	return nil
}

// peak returns the positive part of a map over its largest value. A map that isn't finite has NaN for all
// values.
func (p GAEParams) peak(payload []byte) (stages.Tensor, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return t, err
	}
	if len(t.Shape) < 2 || len(t.Shape) > 3 || t.Len() == 0 {
		return t, fmt.Errorf("a map of shape %v is neither [H,W] nor [C,H,W]", t.Shape)
	}
	return stages.NewTensor(metric.Peak(t.Float64s(), p.epsilon()), t.Shape...), nil
}

// weights decodes what a map's relevance is worth at each place.
func weights(payload []byte, of stages.Tensor) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if !sameGrid(t.Shape, of.Shape) {
		return nil, fmt.Errorf("a map of shape %v doesn't fit one of shape %v", of.Shape, t.Shape)
	}
	return t.Float64s(), nil
}

// sameGrid reports whether two shapes [H,W] or [C,H,W] have the same places, and the same channels if both
// have some.
func sameGrid(a, b []int) bool {
	if len(a) == len(b) {
		return slices.Equal(a, b)
	}
	return len(a) >= 2 && len(b) >= 2 && slices.Equal(a[len(a)-2:], b[len(b)-2:])
}

// gaeSequences are the two sequences of masked images of an item, by order.
type gaeSequences struct {
	distances map[string][]float64 // of the maps at the masked states from the unmasked image's
	outputs   map[string][]float64 // at all states
}

// sequences returns those of item i, folding the maps of its masked images.
func (p GAEParams) sequences(e *stages.Env, i int, original stages.Tensor) (gaeSequences, error) {
	s := gaeSequences{map[string][]float64{}, map[string][]float64{}}
	outputs, err := stages.DecodeTensor(e.In("outputs", i))
	if err != nil {
		return s, fmt.Errorf("outputs: %w", err)
	}
	if len(outputs.Shape) != 2 || outputs.Shape[0] != 2 || outputs.Shape[1] < 2 {
		return s, fmt.Errorf("outputs of shape %v aren't those of two sequences", outputs.Shape)
	}
	states := outputs.Shape[1]
	for k, order := range gaeOrders {
		s.outputs[order] = outputs.Float64s()[k*states : (k+1)*states]
		s.distances[order] = slices.Repeat([]float64{math.NaN()}, states-1)
	}
	values, missing := original.Float64s(), 2*(states-1)
	for m, err := range e.All(i, "masked_maps") {
		if err != nil {
			return s, err
		}
		order, step, err := p.place(m[0].Coord, states)
		if err != nil {
			return s, err
		}
		masked, err := p.peak(m[0].Data)
		if err != nil {
			return s, fmt.Errorf("masked_maps: %w", err)
		}
		if !slices.Equal(masked.Shape, original.Shape) {
			return s, fmt.Errorf("a masked image's map has the shape %v, the image's %v", masked.Shape,
				original.Shape)
		}
		s.distances[order][step-1] = metric.Distance(values, masked.Float64s(), p.epsilon())
		missing--
	}
	if missing > 0 {
		e.WarnItem(i, "%d of the %d masked images have no map, so that robustness is undefined", missing,
			2*(states-1))
	}
	return s, nil
}

// robustness returns LC_R.
func (s gaeSequences) robustness(epsilon float64) float64 {
	morf, lerf := s.outputs["morf"], s.outputs["lerf"]
	return metric.Robustness(s.distances["morf"], s.distances["lerf"], morf[1:], lerf[1:], morf[0], epsilon)
}

// gaeOrders are the ids of the axis of orders, in the order of the outputs.
var gaeOrders = []string{"morf", "lerf"}

// place returns the order and the step of a masked image, from 1.
func (p GAEParams) place(coord []stages.Coord, states int) (order string, step int, err error) {
	for _, c := range coord {
		switch c.Axis {
		case p.Order:
			order = c.ID
		case p.Step:
			step, err = strconv.Atoi(c.ID)
		}
	}
	if !slices.Contains(gaeOrders, order) {
		return "", 0, fmt.Errorf("masked_maps need a collapsed axis %s of morf and lerf: it is at %q",
			p.Order, order)
	}
	if err != nil || step < 1 || step >= states {
		return "", 0, fmt.Errorf("masked_maps need a collapsed axis %s of the steps 1 to %d", p.Step,
			states-1)
	}
	return order, step, nil
}

// epsilon is what a variant adds to denominators.
func (p GAEParams) epsilon() float64 {
	if p.Variant == official {
		return 1e-9
	}
	return 0
}
