package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// RelativeStabilityParams are the parameters of [RelativeStability].
type RelativeStabilityParams struct {
	Draw    string  `yaml:"draw" doc:"the axis of the draws" axis:"draws"`
	Values  string  `yaml:"values" doc:"a pixel's relevance: the sum over channels, or its magnitude" choices:"signed|magnitude"`
	Epsilon float64 `yaml:"epsilon" doc:"the least denominator, and what a pixel of relevance 0 counts as where its change is divided by it" min:"0.000000000001" max:"1"`
}

// RelativeStability has the three scores of Agarwal et al., "Rethinking Stability for Attribution-based
// Explanations", 2022.
var RelativeStability = stages.New(stages.Def[RelativeStabilityParams]{
	Name: "score/relative-stability",
	Doc: `change of maps by the change of input, output or layer

RIS, ROS and RRS: the relative change of the map, by that of the input, by the change of
the outputs and by the relative change of a layer, model/change has these. The largest
over the draws is the paper's; one pixel of a relevance near 0 decides it, so that
the median over draws is on further ports. Draws whose prediction changes count in none,
and are counted. perturb/noise makes the draws, and their maps explain the original's
class: normal noise is the authors', of deviation 0.05 in their library OpenXAI (scale:
0.05). Agarwal, Johnson, Pawelczyk, Krishna, Saxena, Zitnik and Lakkaraju, "Rethinking
Stability for Attribution-based Explanations", 2022.`,
	Definition: stages.Definition{
		Formula: "max over draws x′ of ‖(a(x) − a(x′))/a(x)‖₂ / max(d, ε), d the relative change of the " +
			"input for RIS, ‖h − h′‖₂ of the logits for ROS, the relative change of a layer for RRS; a " +
			"zero that divides counts as ε",
		Unit:     "a pixel",
		Operator: "noise on every value, of perturb/noise: its distribution and scale belong to the score",
		Response: "the method's map, of the original image's class; input, logits and a layer of the " +
			"model",
		Reference:   "the map of the image, and the image",
		Aggregation: "the maximum over draws of the same prediction, and their median",
		Randomness:  "the draws, by the experiment's seed, the image and the draw's name",
		Undefined: "where every draw changes the prediction, without draws, and for a map with a value " +
			"that isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the original images"},
		{Name: "draws", Type: stages.Maps, Doc: "maps of the draws", Over: true},
		{Name: "changes", Type: stages.Changes, Doc: "how far the model moves to the draws", Over: true},
	},
	Outputs: []stages.Port{
		{Name: "ris", Type: stages.Scores, Doc: "relative input stability, at least 0"},
		{Name: "ros", Type: stages.Scores, Doc: "relative output stability, at least 0"},
		{Name: "rrs", Type: stages.Scores, Doc: "relative representation stability, at least 0"},
		{Name: "ris_median", Type: stages.Scores, Doc: "the median of ris over draws, not the maximum"},
		{Name: "ros_median", Type: stages.Scores, Doc: "the median of ros over draws"},
		{Name: "rrs_median", Type: stages.Scores, Doc: "the median of rrs over draws"},
		{Name: "changed", Type: stages.Scores, Doc: "the share of the draws whose prediction changes"},
	},
	Variants: []stages.Variant{{
		Item: "draws that change the prediction", Default: "left out, and counted on the port changed",
		Differs: "Quantus gives the image NaN for a single one of its 200",
		Golden:  "axioms",
	}, {
		Item: "noise", Default: "that of perturb/noise, by default normal, as the authors'",
		Differs: "OpenXAI, of the authors, adds normal noise to continuous features, of deviation 0.05 " +
			"unless set, and flips others; Quantus draws from 0.02 to 0.2, all of one sign, as its lower " +
			"bound keeps the function's default",
	}, {
		Item: "a small denominator", Default: "at least epsilon",
		Differs: "the paper has the maximum with ε as here; Quantus adds ε where the denominator is 0 alone",
	}},
	Defaults: RelativeStabilityParams{Values: metric.Signed, Epsilon: 1e-6},
	Facts: func(p RelativeStabilityParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		out := map[string]stages.Facts{}
		for _, port := range stabilities {
			for suffix, of := range map[string]string{"": "max", "_median": "median"} {
				m := stages.Measure{Direction: stages.Lower, High: math.Inf(1), Tolerance: 5e-2,
					ItemTolerance: 0.5, Variant: fmt.Sprintf("%s of %s draws", of, in["draws"]["cells"])}
				out[port+suffix] = m.Facts(nil)
			}
		}
		m := stages.Measure{Unit: "share", Direction: stages.None, High: 1, Tolerance: 1e-3,
			ItemTolerance: orderJump}
		out["changed"] = m.Facts(nil)
		return out, nil
	},
	Run: func(ctx context.Context, p RelativeStabilityParams, e *stages.Env) error {
		for i := range e.Len() {
			if err := p.put(ctx, e, i); err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Done(1)
		}
		return nil
	},
})

// stabilities are the ports, in the order of the values on the port changes.
var stabilities = []string{"ris", "ros", "rrs"}

// put puts the scores of item i.
func (p RelativeStabilityParams) put(ctx context.Context, e *stages.Env, i int) error {
	d := DrawParams{Values: p.Values}
	a, err := d.values(e.In("maps", i))
	if err != nil {
		return err
	}
	ratios, changed, n := make([][]float64, len(stabilities)), 0, 0
	for m, err := range e.All(i, "draws", "changes") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		b, err := d.drawOf(m[0].Data, a)
		if err != nil {
			return err
		}
		t, err := stages.DecodeTensor(m[1].Data)
		if err == nil && t.Len() != len(stabilities)+1 {
			err = fmt.Errorf("changes of shape %v aren't those of model/change", t.Shape)
		}
		if err != nil {
			return err
		}
		by := t.Float64s()
		if n++; by[len(stabilities)] == 0 {
			changed++
			continue
		}
		change := p.change(a, b)
		for k := range stabilities {
			ratios[k] = append(ratios[k], change/math.Max(by[k], p.Epsilon))
		}
	}
	for k, port := range stabilities {
		most := math.Inf(-1)
		for _, v := range ratios[k] {
			most = math.Max(most, v) // NaN if one is
		}
		if len(ratios[k]) == 0 {
			most = math.NaN()
		}
		e.Put(port, i, stages.Scalar(most))
		e.Put(port+"_median", i, stages.Scalar(metric.Median(ratios[k])))
	}
	e.Put("changed", i, stages.Scalar(float64(changed)/float64(n))) // NaN without draws
	return nil
}

// change returns ‖(a − b)/a‖₂, NaN if a value isn't finite.
func (p RelativeStabilityParams) change(a, b []float64) float64 {
	if !metric.Defined(a) || !metric.Defined(b) {
		return math.NaN()
	}
	sum := 0.0
	for k, v := range a {
		by := v
		if v == 0 {
			by = p.Epsilon
		}
		d := (v - b[k]) / by
		sum += float64(d * d)
	}
	return math.Sqrt(sum)
}
