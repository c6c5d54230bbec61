package score

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// MASParams are the parameters of [MAS].
type MASParams struct {
	Variant string `yaml:"variant" doc:"undefined scores: undefined (paper), or 0.5 as in the authors' code (official)" choices:"paper|official"`
	Values  string `yaml:"values" doc:"how the channels of a map are reduced, which must match the stages that made the curves: magnitude is |sum|, signed the sum" choices:"magnitude|signed"`
}

// MAS scores maps by insertion and deletion, with a penalty where the map's magnitudes don't match the
// model's response, after Walker, Simon, Chen and Ewetz, "Attribution Quality Metrics with Magnitude
// Alignment", IJCAI 2024.
var MAS = stages.New(stages.Def[MASParams]{
	Name: "score/mas",
	Doc: `magnitude-aligned insertion and deletion scores

Like score/rise on the normalised curve, with a penalty at each point: the distance
between the share of the response and the share of the map's total reached so far. The
order of steps is that of the authors' code. Walker et al., "Attribution
Quality Metrics with Magnitude Alignment", IJCAI 2024, equations 4 to 6. A constant map has no order and therefore no score, unless its curves follow a
random order (ties: random).`,
	Definition: stages.Definition{
		Formula: "area of min-max(clip(MR ∓ |DR − MR|)), − for insertion and + for deletion; MR is f, " +
			"scaled so that the substrate has 0 and the image 1, clipped and made monotone; DR is the " +
			"share of the map's total that is inserted, or left",
		Unit:        "a pixel, in steps of as many as the curves have",
		Operator:    "that of the curves: replacement by a substrate",
		Response:    "the explained class's probability",
		Reference:   "the share of the map's total that the same pixels have",
		Aggregation: "areas by the trapezoidal rule; difference = insertion − deletion",
		Randomness:  "none, besides that of the curves",
		Undefined: "where image and substrate have one response, the map's total is 0 or isn't a " +
			"number, or the clipped curve is constant (½ with variant: official), and where a curve is: " +
			"the map has no order",
	},
	Version:  3,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "insertion", Type: stages.Curves, Doc: "curves of perturb/insertion, of the same maps"},
		{Name: "deletion", Type: stages.Curves, Doc: "curves of perturb/deletion, of the same maps"},
		{Name: "maps", Type: stages.Maps, Doc: "the maps of the curves"},
	},
	Outputs: []stages.Port{
		{Name: "insertion", Type: stages.Scores, Doc: "area under the penalised insertion curve"},
		{Name: "deletion", Type: stages.Scores, Doc: "area under the penalised deletion curve"},
		{Name: "difference", Type: stages.Scores, Doc: "insertion minus deletion"},
	},
	Defaults: MASParams{Variant: paper, Values: metric.Magnitude},
	Variants: []stages.Variant{{
		Item: "maps whose total is zero or not a number, images that score like their substrate, " +
			"constant curves",
		Default: paper,
		Differs: "official: the curve is replaced by a straight line, so that the score is 0.5 and the " +
			"difference 0; paper: undefined; of other constant maps, whose order the code leaves to an " +
			"unstable sort, both are",
		Golden: "mas_rise",
	}},
	Facts: func(p MASParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		for _, port := range []string{"insertion", "deletion"} {
			if _, err := stepOf(in[port]); err != nil {
				return nil, fmt.Errorf("%s: %w", port, err)
			}
		}
		// The normalisation divides by a difference of probabilities.
		return threeScores(stages.Measure{Unit: "share", Tolerance: 1e-3, ItemTolerance: orderJump,
			Variant: tag(p.Variant)}, in)
	},
	Run: func(_ context.Context, p MASParams, e *stages.Env) error {
		for i := range e.Len() {
			area, err := aligned(p, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			putThree(e, i, area)
		}
		return nil
	},
})

// aligned returns the insertion and the deletion score of item i.
func aligned(p MASParams, e *stages.Env, i int) (area [2]float64, err error) {
	parts, err := partsOf(p, e, i)
	for protocol := range area {
		area[protocol] = metric.Area(parts[protocol].score)
	}
	return area, err
}

// masParts are the curves that a score is made of, NaN throughout where one is undefined.
type masParts struct {
	response, density, penalty, score []float64
}

// partsOf returns the curves of item i by protocol.
func partsOf(p MASParams, e *stages.Env, i int) (parts [2]masParts, err error) {
	t, err := stages.DecodeTensor(e.In("maps", i))
	if err != nil {
		return parts, err
	}
	values, height, width, err := metric.Values(t, p.Values)
	if err != nil {
		return parts, err
	}
	order := metric.Order(values)
	for _, protocol := range []metric.Protocol{metric.Insertion, metric.Deletion} {
		port, c := protocol.String(), &parts[protocol]
		step, err := stepOf(e.Facts(port))
		if err != nil {
			return parts, fmt.Errorf("%s: %w", port, err)
		}
		raw, err := metric.Response(e.Facts(port), e.In(port, i), "probability")
		if err != nil {
			return parts, fmt.Errorf("%s: %w", port, err)
		}
		if points := metric.Points(len(order), step); len(raw) != points {
			return parts, fmt.Errorf("%s: a curve of %d points doesn't match a map of %d×%d pixels: it "+
				"needs %d at %d pixels per step", port, len(raw), height, width, points, step)
		}
		var defined, scored bool
		c.response, defined = metric.MonotoneOf(raw, protocol)
		c.density = metric.DensityResponse(values, order, step, protocol)
		c.score, c.penalty, scored = metric.Penalise(c.response, c.density, protocol)
		// The official code orders a constant map by an unstable sort, so its curve is unspecified; only a
		// map without a total has a score independent of its curve.
		unordered := slices.ContainsFunc(raw, math.IsNaN) && !slices.ContainsFunc(c.density, math.IsNaN)
		if p.Variant == paper && !defined || unordered {
			undefine(c.response)
		}
		if p.Variant == paper && !(defined && scored) || unordered {
			undefine(c.score)
		}
	}
	return parts, nil
}

// undefine makes all points of a curve NaN.
func undefine(curve []float64) {
	for k := range curve {
		curve[k] = math.NaN()
	}
}

// MASCurvesParams are the parameters of [MASCurves].
type MASCurvesParams struct {
	MASParams
	Of string `yaml:"of" doc:"which curve: the score's, whose area score/mas reports; the model response MR; the density response DR; or the penalty AP, their distance" choices:"score|response|density|penalty"`
}

// MASCurves has the curves behind [MAS].
var MASCurves = stages.New(stages.Def[MASCurvesParams]{
	Name: "score/mas-curves",
	Doc: `the curves behind magnitude-aligned scores

The curve whose area score/mas reports, or one of those that it is made of: the model
response, monotone from 0 to 1, which the paper also calls the curve of RISE; the
density response, the share of the map's total that is inserted or left; and the
penalty, their distance. A curve of score/mas that is undefined is undefined here, at
all its points. Walker et al., "Attribution Quality Metrics with Magnitude
Alignment", IJCAI 2024, equations 1 to 5.`,
	Definition: stages.Definition{
		Formula:     "MR, DR, |DR − MR|, or the curve min-max(clip(MR ∓ |DR − MR|)) of score/mas",
		Unit:        "a pixel, in steps of as many as the curves have",
		Operator:    "that of the curves: replacement by a substrate",
		Response:    "the explained class's probability",
		Reference:   "the share of the map's total that the same pixels have",
		Aggregation: "none: a curve",
		Randomness:  "none, besides that of the curves",
		Undefined: "response: where image and substrate have one response; score: where score/mas is; " +
			"both where the map has no order; density and penalty: beyond the first point where the map's " +
			"total is 0 or isn't a number",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs:   MAS.Inputs,
	Outputs: []stages.Port{
		{Name: "insertion", Type: stages.Curves, Doc: "the curve of the insertion"},
		{Name: "deletion", Type: stages.Curves, Doc: "the curve of the deletion"},
		{Name: "difference", Type: stages.Curves, Doc: "insertion minus deletion, point by point"},
	},
	Defaults: MASCurvesParams{MASParams: MASParams{Variant: paper, Values: metric.Magnitude}, Of: "score"},
	Facts: func(p MASCurvesParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if _, err := MAS.Facts(&p.MASParams, in); err != nil {
			return nil, err
		}
		if a, b := in["insertion"]["step_pixels"], in["deletion"]["step_pixels"]; a != b {
			return nil, fmt.Errorf("insertion steps by %s pixels and deletion by %s: their curves have no "+
				"difference", a, b)
		}
		out := map[string]stages.Facts{}
		for _, port := range []string{"insertion", "deletion", "difference"} {
			facts := stages.Facts{"responses": "share", "order": port, "direction": string(stages.Higher),
				"variant": tag(p.Variant)}
			if port == "deletion" {
				facts["direction"] = string(stages.Lower)
			}
			if from := in["insertion"]; from["shares"] != "" {
				facts["shares"] = from["shares"]
			}
			out[port] = facts
		}
		return out, nil
	},
	Run: func(_ context.Context, p MASCurvesParams, e *stages.Env) error {
		for i := range e.Len() {
			parts, err := partsOf(p.MASParams, e, i)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			insertion, deletion := parts[metric.Insertion].of(p.Of), parts[metric.Deletion].of(p.Of)
			difference := make([]float64, len(insertion))
			for k := range difference {
				difference[k] = insertion[k] - deletion[k]
			}
			e.Put("insertion", i, curveOf(insertion))
			e.Put("deletion", i, curveOf(deletion))
			e.Put("difference", i, curveOf(difference))
			e.Done(1)
		}
		return nil
	},
})

// of returns the curve that the parameter of names.
func (c masParts) of(name string) []float64 {
	switch name {
	case "response":
		return c.response
	case "density":
		return c.density
	case "penalty":
		return c.penalty
	}
	return c.score
}

// curveOf encodes a curve of one response.
func curveOf(values []float64) []byte { return stages.NewTensor(values, 1, len(values)).Encode() }
