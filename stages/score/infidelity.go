package score

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// InfidelityParams are the parameters of [Infidelity].
type InfidelityParams struct {
	Output string `yaml:"output" declared:"maps" doc:"the explained output, whose drop the map predicts; declared: what the method declares" choices:"declared|logit|probability"`
	Map    string `yaml:"map" declared:"maps" doc:"a value of the map: what its method declares, a gradient, per unit of the normalised image, or a contribution to the output" choices:"declared|gradient|contribution"`
}

func (p InfidelityParams) subset() SubsetParams { return SubsetParams{p.Output, metric.Signed} }

// Infidelity is that of Yeh, Hsieh, Suggala, Inouye and Ravikumar, "On the (in)fidelity and sensitivity of
// explanations", NeurIPS 2019, definition 2.1, and section 3 for the optimal scale.
var Infidelity = subsetMetric(stages.Def[InfidelityParams]{
	Name: "score/infidelity",
	Doc: `squared error of the drop that a map predicts of subsets

A gradient predicts Σ a·(x − x′) over all values of the replaced image x′, channel by
channel (reduce: none of the method); a contribution predicts its sum over the subset.
Which of the two a map is, and of which output, methods declare, those on regions and
segments with share: true alone; where one doesn't, write map and output. Of texts only a
contribution predicts drops, since a token is there or not. In Quantus
squares of 4×4 pixels are replaced by black, one after the other:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: single, unit: region, region: 4}
  score: {uses: score/infidelity, in: {maps: maps, subsets: subset}}

The authors add normal noise to the whole image, which a gradient alone predicts:

  noisy:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {shares: [1], samples: 1, substrate: noisy, noise: 0.2, repeats: 10}

The error depends on the map's scale. The port scaled has it for the best multiple of the
map, and scale the factor. Yeh et al. 2019, definition 2.1.`,
	Definition: ofSubsets(stages.Definition{
		Formula: "the mean over subsets S of (u − Δ)², Δ = f(x) − f(x_S); u = Σ a·(x − x_S) over values of " +
			"channels for map: gradient, Σ a over S for map: contribution; scaled: of β·u, β = Σ u·Δ / Σ u²",
		Response:    "the output that the method explains: logit or probability of the explained class",
		Aggregation: "a mean of squares over the subsets of an image",
		Undefined: "for a map or a response that isn't finite, and without subsets; scale and scaled also " +
			"for a map that predicts 0 of every subset",
	}),
	Version: 1,
	Inputs: append(subsetInputs(), stages.Port{Name: "differences", Type: stages.Differences,
		Beside: "subsets",
		Doc:    "the normalised image minus its substrate"}),
	Outputs: []stages.Port{
		{Name: "scores", Type: stages.Scores, Doc: "the error of the map as it is"},
		{Name: "scaled", Type: stages.Scores, Doc: "the error of its best multiple"},
		{Name: "scale", Type: stages.Scores, Doc: "the best factor, 1 for a map that sums to the drops"},
	},
	Variants: []stages.Variant{{
		Item: "scale", Default: "ports scores and scaled",
		Differs: "captum's normalize=True is the port scaled",
		Golden:  "subsets",
	}, {
		Item: "squares", Default: "one at a time",
		Differs: "Quantus leaves the squares before replaced, too, and can't run where a side isn't a " +
			"multiple of the square",
		Golden: "subsets",
	}},
	Defaults: InfidelityParams{stages.AsDeclared, stages.AsDeclared},
	Facts: func(p InfidelityParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		repeats, draws := in["subsets"]["repeats"], in["differences"]["draws"]
		switch {
		case p.Map == "gradient" && in["subsets"]["unit"] == "token":
			return nil, stages.BadField("map", "map is gradient, which is per unit of a token's embedding, "+
				"and what that loses isn't known: explain texts by contributions, as input × gradient is")
		case p.Map == "gradient" && repeats != draws:
			return nil, stages.BadField("map", "map is gradient, but the subsets are replaced by %s draws "+
				"of noise, of which the differences have %s: set repeats: 1 of perturb/subset", repeats,
				draws)
		case p.Map == "contribution" && in["subsets"]["substrate"] == "noisy":
			return nil, stages.BadField("map", "map is contribution, but noise is added to the image, not "+
				"put in its place: a contribution doesn't predict that, a gradient does")
		}
		m := stages.Measure{Direction: stages.Lower, High: math.Inf(1), Tolerance: 1e-2, ItemTolerance: 1e-1}
		scale := stages.Measure{Direction: stages.None, Low: math.Inf(-1), High: math.Inf(1), Tolerance: 1e-2,
			ItemTolerance: 1e-1}
		return map[string]stages.Facts{"scores": m.Facts(nil), "scaled": m.Facts(nil),
			"scale": scale.Facts(nil)}, nil
	},
}, func(p InfidelityParams, e *stages.Env, i int, s replaced, values []float64) error {
	switch p.Map {
	case stages.AsDeclared:
		return stages.BadField("map", "map is to be declared by the method: write gradient or contribution")
	case "gradient":
		var err error
		if values, err = predicted(e.In("maps", i), e.In("differences", i)); err != nil {
			return err
		}
	}
	raw, scaled, scale := s.infidelity(values)
	e.Put("scores", i, stages.Scalar(raw))
	e.Put("scaled", i, stages.Scalar(scaled))
	e.Put("scale", i, stages.Scalar(scale))
	return nil
})

// predicted returns what a gradient predicts of each pixel's replacement, Σ_c a·(x − x′), for one draw of x′
// after the other.
func predicted(payload, differences []byte) ([]float64, error) {
	a, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	d, err := stages.DecodeTensor(differences)
	if err != nil {
		return nil, fmt.Errorf("port differences: %w", err)
	}
	shape := a.Shape
	if len(shape) == 2 {
		shape = append([]int{1}, shape...)
	}
	image := d.Shape[max(0, len(d.Shape)-3):] // without the number of draws
	if len(d.Shape) > 4 || len(image) != 3 || !slices.Equal(shape, image) {
		return nil, stages.BadField("map", "a gradient of shape %v doesn't match an image of shape %v: "+
			"set reduce: none of the method, which keeps the channels", a.Shape, image)
	}
	gradient := a.Float64s()
	var out []float64
	for values := range slices.Chunk(d.Float64s(), len(gradient)) {
		for k, v := range gradient {
			values[k] *= v
		}
		out = append(out, metric.Sum.Of(values, image[1]*image[2])...)
	}
	return out, nil
}

// infidelity returns the error of what values predict, that of their best multiple, and the factor. There are
// values for each draw, or for all.
func (s replaced) infidelity(values []float64) (raw, scaled, scale float64) {
	var of [][]float64
	for draw := range slices.Chunk(values, len(s.units.Of)) {
		of = append(of, s.units.Sum(draw))
	}
	if !metric.Defined(values) || !metric.Defined(s.rows) || s.Count == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	products, squares := 0.0, 0.0
	predictions := make([]float64, s.Count)
	for k, response := range s.rows {
		u := s.Sum(k, of[k%len(of)])
		predictions[k] = u
		products += float64(u * (s.image - response))
		squares += float64(u * u)
	}
	scale = products / squares // NaN if all predictions are 0
	for k, u := range predictions {
		drop := s.image - s.rows[k]
		raw += float64((u - drop) * (u - drop))
		rest := float64(scale*u) - drop
		scaled += float64(rest * rest)
	}
	return raw / float64(s.Count), scaled / float64(s.Count), scale
}
