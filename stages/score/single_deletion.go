package score

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// SingleDeletionParams are the parameters of [SingleDeletion].
type SingleDeletionParams struct{ SubsetParams }

// SingleDeletion is the single deletion score of Hesse, Schaub-Meyer and Roth, "Benchmarking the attribution
// quality of vision models", NeurIPS 2024.
var SingleDeletion = subsetCorrelation(stages.Def[SingleDeletionParams]{
	Name: "score/single-deletion",
	Doc: `rank correlation of cells' relevance and single drops

Each cell of a grid of 4×4 is replaced alone by zero after normalisation; for images of
224 pixels:

  subset:
    uses: perturb/subset
    in: {model: model, images: images}
    with: {draw: single, unit: region, region: 56, substrate: zero}
  score: {uses: score/single-deletion, in: {maps: maps, subsets: subset}}

The in-domain score (IDSDS) is the same number, of a net that was trained on images without
some cells: give model/onnx its file. It is made to compare nets, too. Hesse et al.,
"Benchmarking the Attribution Quality of Vision Models", NeurIPS 2024.`,
	Definition: ofSubsets(stages.Definition{
		Formula: "Spearman's ρ over units u of Σ a over u and f(x) − f(x_u)",
		Unit:    "in the paper a cell of a grid of 4×4, as a region of perturb/subset",
		Operator: "the substrate of perturb/subset in the place of a cell, in the paper zero after " +
			"normalisation",
		Aggregation: "a rank correlation over the units of an image, with shared ranks for ties",
		Randomness:  "none, except for random substrates: by the experiment's seed and the image",
		Undefined: "for a map that isn't finite, where all units have the same relevance or drop, or of " +
			"one unit",
	}),
	Version:  1,
	Defaults: SingleDeletionParams{SubsetParams{Response: "logit", Values: metric.Signed}},
}, stat.Spearman, taking("single"))
