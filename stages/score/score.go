// Package score has the stages that compute scores from maps and curves: one metric a file. score.go has
// the functions that all share; localisation.go is common to the metrics that compare a map with a mask,
// agreement.go to the metrics of two maps, draws.go to the metrics of robustness, morf_lerf.go to the scores
// of two orders of removal, subsets.go to those of replaced subsets, and population.go to those of an image
// among the others. labels.go checks labels, and top1.go has score/top-1.
//
// An undefined score, such as that of a map without relevance, is NaN: it is counted, and excluded from
// means. Numbers that an official implementation returns instead are available by variant: official.
package score

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// The values of the parameter variant.
const (
	paper    = "paper"
	official = "official"
)

// tag returns the variant's name as part of a measure; the default has no name.
func tag(variant string) string {
	if variant == paper {
		return ""
	}
	return variant
}

// responses maps the values of the parameter response to the names of curves' responses.
var responses = map[string]string{"probability": "probability", "logit": "logit", "top-1": "correct"}

// measureOf returns the measure of a mean or an area of a response of curves with these facts, for values of
// the parameter response.
func measureOf(response string, curves stages.Facts) stages.Measure {
	switch {
	case curves[program.TargetFact] != "":
		return measureOfValue(curves)
	case response == "probability":
		return stages.Measure{Unit: "probability", High: 1, Tolerance: 1e-3, ItemTolerance: orderJump}
	case response == "top-1":
		// A prediction at the decision boundary moves one image's curve, and the mean by less.
		return stages.Measure{Unit: "share", High: 1, Tolerance: 1e-3, ItemTolerance: orderJump}
	default:
		// The range of logits is about ten times that of probabilities.
		return stages.Measure{Unit: "logit", Low: math.Inf(-1), High: math.Inf(1), Tolerance: 1e-2,
			ItemTolerance: 10 * orderJump}
	}
}

// measureOfValue returns that of an expression's value, which has bounds where the expression has.
func measureOfValue(curves stages.Facts) stages.Measure {
	m := stages.Measure{Unit: cmp.Or(curves[program.UnitFact], "value"), Low: math.Inf(-1), High: math.Inf(1),
		Tolerance: 1e-2, ItemTolerance: 10 * orderJump}
	if low, high := program.Bounds(curves); !math.IsInf(high-low, 0) {
		m.Low, m.High, m.Tolerance, m.ItemTolerance = low, high, 1e-3*(high-low), (high-low)*orderJump
	}
	return m
}

// difference widens a measure to the difference of two numbers that it measures.
func difference(m stages.Measure) stages.Measure {
	m.Low = m.Low - m.High // of infinities: −∞
	m.Tolerance *= 2
	m.ItemTolerance *= 2
	return m
}

// opposite returns the direction in which a number is better whose negative is better in direction d.
func opposite(d stages.Direction) stages.Direction {
	switch d {
	case stages.Higher:
		return stages.Lower
	case stages.Lower:
		return stages.Higher
	}
	return stages.None
}

// checkRemoval rejects curves that don't begin at the original image.
func checkRemoval(in map[string]stages.Facts, port string) error {
	if order := in[port]["order"]; order == metric.Insertion.String() {
		return fmt.Errorf("the input %q needs curves that remove pixels, not of %q", port, order)
	}
	return nil
}

// checkOrder rejects curves made in another order than an input needs, as with swapped edges.
func checkOrder(in map[string]stages.Facts, port string, p metric.Protocol) error {
	if order := in[port]["order"]; order != p.String() {
		return fmt.Errorf("the input %q needs curves of %s, not of %q", port, p, order)
	}
	return nil
}

// stepOf returns the number of pixels that change from one point of the curves to the next.
func stepOf(facts stages.Facts) (int, error) {
	if facts["unit"] == "token" {
		return 0, errors.New("the steps of texts are shares of tokens, and those that are aligned " +
			"with a map are numbers of pixels: score/rise and score/eraser take curves of texts")
	}
	n, err := strconv.Atoi(facts["step_pixels"])
	if err != nil || n < 1 {
		return 0, errors.New("curves whose steps have different numbers of pixels can't be aligned with a " +
			"map: give them a step in pixels, or a number of steps that divides the pixels")
	}
	return n, nil
}

// ofCurves completes the definition of a score of perturbation curves, which decide on unit and operator.
func ofCurves(d stages.Definition) stages.Definition {
	d.Unit = "that of the curves: a pixel, a region or a segment, of a text a token that isn't special"
	d.Operator = "that of the curves: replacement by a substrate, imputation, or removal of tokens"
	d.Response = "by response, the explained class's probability or logit, or whether the prediction is " +
		"correct"
	d.Randomness = "none, besides that of the curves"
	d.Undefined = "where a curve is: the map has no order"
	return d
}
