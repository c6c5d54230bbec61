package score

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// ERASERParams are the parameters of [ERASER].
type ERASERParams struct {
	Response string `yaml:"response" doc:"the response that changes: the class's probability or logit" choices:"probability|logit"`
}

// ERASER has the faithfulness metrics of DeYoung et al., "ERASER: A Benchmark to Evaluate Rationalized NLP
// Models", ACL 2020, section 4.2, of rationales of several sizes, as Attanasio et al. compute them, "ferret:
// a Framework for Benchmarking Explainers on Transformers", EACL 2023.
var ERASER = stages.New(stages.Def[ERASERParams]{
	Name: "score/eraser",
	Doc: `drop without a text's top tokens, and with them alone

A rationale is the top share of a text's tokens, special ones left out. Comprehensiveness
is how far the response falls without them, sufficiency how far it falls with them alone,
each the mean over the rationales of the shares, those of equal size counted once and
empty ones not at all:

  removed:
    uses: perturb/deletion
    in: {model: model, texts: texts, maps: maps}
    with: {substrate: removal, values: signed, shares: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]}
  kept:
    uses: perturb/insertion
    in: {model: model, texts: texts, maps: maps}
    with: {substrate: removal, values: signed, shares: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]}
  eraser: {uses: score/eraser, in: {removed: removed, kept: kept}}

With values: positive no rationale has a token of negative relevance, as in ferret.
DeYoung et al., "ERASER", ACL 2020; Attanasio et al., "ferret", EACL 2023.`,
	Definition: stages.Definition{
		Formula: "comprehensiveness: the mean of f(x) − f(x ∖ rₖ), sufficiency: the mean of f(x) − f(rₖ), " +
			"over the rationales rₖ of the ⌊sₖ·n⌋ most relevant of n tokens that differ and aren't empty",
		Unit:        "a token that isn't special",
		Operator:    "that of the curves: removal, or the token that masks or pads",
		Response:    "the explained class's probability, or its logit",
		Reference:   "the response to the text, f(x)",
		Aggregation: "a mean over the rationales of a text",
		Randomness:  "none, besides that of the curves",
		Undefined: "where the map has no order, where all rationales are empty, as those of a map without " +
			"positive relevance with values: positive, and where removal leaves no token",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "removed", Type: stages.Curves,
			Doc: "curves of texts without their most relevant tokens: of perturb/deletion"},
		{Name: "kept", Type: stages.Curves,
			Doc: "curves of the most relevant tokens alone, at the same shares: of perturb/insertion"},
	},
	Outputs: []stages.Port{
		{Name: "comprehensiveness", Type: stages.Scores, Doc: "the mean drop without the rationales"},
		{Name: "sufficiency", Type: stages.Scores, Doc: "the mean drop with the rationales alone"},
	},
	Variants: []stages.Variant{{
		Item: "sizes", Default: "rationales that differ and aren't empty, as ferret has them",
		Differs: "the paper's mean over shares of 1, 5, 10, 20 and 50 % has the empty rationale as one " +
			"more, and equal ones as often as they occur, as score/aopc of a curve with these shares has " +
			"comprehensiveness; the authors' code has the mean over the shares alone",
	}, {
		Item: "negative relevance", Default: "values: signed, tokens in the order of their relevance",
		Differs: "ferret leaves tokens out of rationales that aren't positive: values: positive",
	}, {
		Item: "substrate", Default: "the tokens that remain, as they are",
		Differs: "ferret decodes their ids and tokenises that text anew, which makes other tokens of " +
			"pieces of words",
	}, {
		Item: "no rationale", Default: "undefined",
		Differs: "ferret gives a comprehensiveness of 0 and a sufficiency of 1, which enter means",
	}},
	Defaults: ERASERParams{Response: "probability"},
	Facts: func(p ERASERParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		removed, kept := in["removed"], in["kept"]
		for _, port := range []string{"removed", "kept"} {
			if in[port]["unit"] != "token" {
				return nil, fmt.Errorf("the input %q needs curves of texts: of images, score/aopc has the "+
					"mean drop without the most relevant pixels", port)
			}
		}
		if order := removed["order"]; order != "deletion" && order != "morf" {
			return nil, fmt.Errorf("the input \"removed\" needs curves that remove the most relevant tokens "+
				"first, not of %q", order)
		}
		if err := checkOrder(in, "kept", metric.Insertion); err != nil {
			return nil, err
		}
		if removed["shares"] != kept["shares"] {
			return nil, errors.New("the inputs \"removed\" and \"kept\" have curves of other shares: give " +
				"both the same")
		}
		m := difference(measureOf(p.Response, kept))
		comprehensiveness, sufficiency := m, m
		comprehensiveness.Direction, sufficiency.Direction = stages.Higher, stages.Lower
		return map[string]stages.Facts{"comprehensiveness": comprehensiveness.Facts(nil),
			"sufficiency": sufficiency.Facts(nil)}, nil
	},
	Run: func(_ context.Context, p ERASERParams, e *stages.Env) error {
		for i := range e.Len() {
			whole, points := math.NaN(), 0
			for _, ports := range [][2]string{{"removed", "comprehensiveness"}, {"kept", "sufficiency"}} {
				port := ports[0]
				curve, err := metric.Response(e.Facts(port), e.In(port, i), responses[p.Response])
				var changed []float64
				if err == nil {
					changed, err = metric.Response(e.Facts(port), e.In(port, i), "changed")
				}
				if err != nil {
					return fmt.Errorf("item %q: %s: %w", e.Calls[i].ID, port, err)
				}
				if port == "removed" {
					whole, points = curve[0], len(curve)
				}
				if len(curve) != points {
					return fmt.Errorf("item %q: the curve on \"removed\" has %d points, and that on %q %d: "+
						"give both the same steps", e.Calls[i].ID, points, port, len(curve))
				}
				e.Put(ports[1], i, stages.Scalar(meanDrop(whole, curve, changed)))
			}
			e.Done(1)
		}
		return nil
	},
})

// meanDrop returns the mean of whole minus the response over the points at which another number of tokens has
// changed than before; NaN if there is none.
func meanDrop(whole float64, curve, changed []float64) float64 {
	sum, n, before := 0.0, 0.0, 0.0
	for k, count := range changed {
		if count != before {
			sum, n, before = sum+(whole-curve[k]), n+1, count
		}
	}
	return sum / n
}
