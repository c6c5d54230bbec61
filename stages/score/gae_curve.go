package score

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
)

// GAECurveParams are the parameters of [GAECurve].
type GAECurveParams struct {
	GAEParams
	Of    string `yaml:"of" doc:"what changes as the image is masked: the output, as a share of the unmasked image's, or the map, by its similarity to the unmasked image's" choices:"output|similarity"`
	Curve string `yaml:"curve" doc:"the sequence, or lerf minus morf" choices:"morf|lerf|difference"`
}

// GAECurve has the curves that the robustness of [GAE] compares: o_t and sim_t of equations 13 and 14, and
// their differences d_t.
var GAECurve = stages.New(stages.Def[GAECurveParams]{
	Name: "score/gae-curve",
	Doc: `output or similarity of maps as the gradient masks an image

One curve of those of which score/gae makes robustness: the output as a share of the
unmasked image's, or the similarity of the map to the unmasked image's, along one of the
sequences of perturb/gradient-masking, or the difference of the two. The closer the
differences of output and similarity are, the more robust is the method.

  changes:
    uses: score/gae-curve
    matrix: [of, curve]
    in: {maps: maps, masked_maps: masked-maps, outputs: masking.outputs}
    over: [order, step]
    with: {of: "${of}", curve: "${curve}"}

Vukadin et al., 2024, equations 13 and 14 and figure 2.`,
	Definition: stages.Definition{
		Formula: "oₜ/o₀, or 1 − d(A, Aₜ), along one sequence of masked images, or by LeRF minus by " +
			"MoRF; d and A as in score/gae",
		Unit:        "an element of the image: a channel of a pixel",
		Operator:    "elements become 0 after normalisation, by their impact",
		Response:    "the explained class's logit o, or the method's map of the masked image",
		Reference:   "the unmasked image's",
		Aggregation: "none: a curve",
		Randomness:  "none",
		Undefined: "points where a denominator is 0: maps without positive relevance, an unmasked " +
			"output of 0; never with variant: official, which adds 1e-9; and maps with a value that isn't " +
			"finite",
	},
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{
		{Name: "maps", Type: stages.Maps, Doc: "maps of the unmasked images"},
		{Name: "masked_maps", Type: stages.Maps, Over: true,
			Doc: "maps of the masked images, at every step of both orders"},
		{Name: "outputs", Type: stages.Curves, Doc: "the outputs of perturb/gradient-masking"},
	},
	Outputs: []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "the curve, with the one response share"}},
	Defaults: GAECurveParams{GAEParams{Order: "order", Step: "step", Variant: paper}, "output", "difference"},
	Facts: func(_ GAECurveParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkGAEOutputs(in); err != nil {
			return nil, err
		}
		f := stages.Facts{"responses": "share"}
		if shares := in["outputs"]["shares"]; shares != "" {
			f["shares"] = shares
		}
		return map[string]stages.Facts{"curves": f}, nil
	},
	Run: func(_ context.Context, p GAECurveParams, e *stages.Env) error {
		for i := range e.Len() {
			original, err := p.peak(e.In("maps", i))
			if err != nil {
				return fmt.Errorf("item %q: maps: %w", e.Calls[i].ID, err)
			}
			s, err := p.sequences(e, i, original)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			curve := p.curve(s)
			e.Put("curves", i, stages.NewTensor(curve, 1, len(curve)).Encode())
			e.Done(1)
		}
		return nil
	},
})

// curve returns a number for each state, the unmasked image first.
func (p GAECurveParams) curve(s gaeSequences) []float64 {
	if p.Curve != "difference" {
		return p.along(s, p.Curve)
	}
	curve := p.along(s, "lerf")
	for k, v := range p.along(s, "morf") {
		curve[k] -= v
	}
	return curve
}

// along returns the curve of a sequence.
func (p GAECurveParams) along(s gaeSequences, order string) []float64 {
	if p.Of == "similarity" {
		curve := []float64{1}
		for _, d := range s.distances[order] {
			curve = append(curve, 1-d)
		}
		return curve
	}
	curve := slices.Clone(s.outputs[order])
	for k := range curve {
		curve[k] /= s.outputs[order][0] + p.epsilon()
	}
	return curve
}
