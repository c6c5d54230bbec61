package score

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/stat"
)

// FaithfulnessCorrelationParams are the parameters of [FaithfulnessCorrelation].
type FaithfulnessCorrelationParams struct{ SubsetParams }

// FaithfulnessCorrelation is the faithfulness of Bhatt, Weller and Moura, "Evaluating and aggregating
// feature-based model explanations", IJCAI 2020, definition 3.
var FaithfulnessCorrelation = subsetCorrelation(stages.Def[FaithfulnessCorrelationParams]{
	Name: "score/faithfulness-correlation",
	Doc: `correlation of random subsets' relevance and drops

Random subsets of one size are replaced, and the drop of the response is compared with
the sum of the map over the subset:

  subset: {uses: perturb/subset, in: {model: model, images: images}, with: {samples: 100, sizes: [224]}}
  score: {uses: score/faithfulness-correlation, in: {maps: maps, subsets: subset}}

The size belongs to the definition: among 50,176 pixels, 224 change a response by little
more than noise. Bhatt et al., "Evaluating and Aggregating Feature-Based Model
Explanations", IJCAI 2020, definition 3.`,
	Definition: ofSubsets(stages.Definition{
		Formula:     "Pearson's r over subsets S of Σ a over S and f(x) − f(x_S), |S| fixed",
		Aggregation: "a correlation over the subsets of an image",
		Undefined: "for a map that isn't finite, and where all sums over subsets are equal, as of a " +
			"constant map, or all drops",
	}),
	Version: 1,
	Variants: []stages.Variant{{
		Item: "features", Default: "a unit has all channels",
		Differs: "Quantus replaces single values of channels, 224 of 3·H·W, and gives each of them the " +
			"map's value of its pixel",
		Golden: "subsets",
	}, {
		Item: "black", Default: "substrate: black, a black pixel",
		Differs: "Quantus calls the least value of the normalised image black",
	}},
	Defaults: FaithfulnessCorrelationParams{SubsetParams{Response: "logit", Values: metric.Signed}},
}, stat.Pearson, oneSize)

// oneSize refuses subsets of several sizes: larger ones have larger sums and drops, whatever the map.
func oneSize(in map[string]stages.Facts) error {
	err := taking("fixed")(in)
	if n := in["subsets"]["sizes"]; err == nil && n != "1" {
		err = fmt.Errorf("the subsets have %s sizes: it needs one, and score/sensitivity-n takes several", n)
	}
	return err
}
