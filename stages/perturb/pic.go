package perturb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// PICParams are the parameters of [PIC].
type PICParams struct {
	PICEndsParams
	Thresholds []float64 `yaml:"thresholds" doc:"the shares of the most relevant pixels that are shown, in addition to the random ones" min:"0" max:"1"`
	Values     string    `yaml:"values" doc:"the relevance of a pixel: the magnitude or the signed value of the sum over channels" choices:"magnitude|signed"`
	Ties       string    `yaml:"ties" doc:"pixels of equal value: merged, they are shown together, so that all those of a constant map are shown at once; otherwise they come row by row, or at random, drawn for each map" choices:"merged|index|random"`
}

// Validate rejects a malformed target, and an empty list of thresholds.
func (p PICParams) Validate() error {
	if err := p.PICEndsParams.Validate(); err != nil {
		return err
	}
	if len(p.Thresholds) == 0 {
		return stages.BadField("thresholds", "thresholds is empty: give it shares of the pixels")
	}
	return nil
}

// PIC makes the performance information curves of Kapishnikov, Bolukbasi, Viégas and Terry, "XRAI: Better
// Attributions Through Regions", ICCV 2019, section 4.1.
var PIC = program.Stage(stages.Def[PICParams]{
	Name: "perturb/pic",
	Doc: `responses to images partly shown, and the images' sizes

Shown are the most relevant pixels by the quantiles of the map, a few random ones, the
same for all images, and the corners; the others are interpolated linearly within the
triangles of Delaunay's triangulation. The information in an image is the size of its
lossless WebP form, by libwebp at quality 100: other releases make other sizes. Curves
go from the random pixels alone to the image.
Kapishnikov et al., ICCV 2019.`,
	Definition: stages.Definition{
		Formula: "f and the length in bytes of images that show the pixels at or above a quantile of " +
			"a, at each threshold",
		Unit: "a pixel with all its channels",
		Operator: "the shown pixels stay, the others are interpolated linearly within Delaunay's " +
			"triangles",
		Response: "probability, logit and correctness of the explained class, and the size of the " +
			"lossless WebP form",
		Reference:   "the start, which shows random pixels alone, and the image",
		Aggregation: "none: a value for each point, of which score/pic is made",
		Randomness: "the random pixels, by the experiment's seed, the same for all images; with ties: " +
			"random the order of equal pixels, by the map",
		Undefined: "for a map with a value that isn't a number, and with ties: index for a constant one",
	},
	Version:  1,
	Passes:   stages.Passes{Forward: "thresholds"},
	Relation: stages.Each,
	Seeded:   true,
	Device:   true,
	Inputs: picInputs(
		stages.Port{Name: "maps", Type: stages.Ranks, Accepts: &stages.Maps, Via: "maps/rank",
			Doc: "attribution maps"},
		stages.Port{Name: "ends", Type: stages.Curves, Optional: true, Else: "perturb/pic-ends",
			Doc: "the ends of the curves"},
		stages.Port{Name: "mask", Type: stages.Masks, Optional: true, Else: "perturb/pic-ends",
			Doc: "1 on the random pixels"}),
	Outputs: []stages.Port{
		{Name: "curves", Type: stages.Curves, Doc: "probability, logit and correctness of the class at the " +
			"start, at every threshold and for the image"},
		{Name: "lengths", Type: stages.Curves,
			Doc: "the bytes of the images' lossless WebP forms; fact: encoder"},
	},
	Defaults: PICParams{PICEndsParams: picDefaults(),
		Thresholds: []float64{.005, .01, .02, .03, .04, .05, .07, .10, .13, .21, .34, .5, .75},
		Values:     "magnitude", Ties: "merged"},
	Check: func(p PICParams, wired func(string) bool) error { return checkTarget(p.Target, wired) },
	Variants: []stages.Variant{{
		Item: "pixels of the images", Default: "paper",
		Differs: "official: the code of MAS interpolates in floating point, shows the model the result, " +
			"and truncates it to 8 bits to measure its size; the authors of PIC round to 8 bits",
		Golden: "pic",
	}, {
		Item: "points on a circle", Default: "the diagonals of the first point",
		Differs: "where more than three shown pixels lie on a circle, Delaunay's triangulation has several " +
			"forms: scipy's choice is its algorithm's, so that some pixels, 4 in 100 on images of 32², " +
			"have another mean of their neighbours there",
		Golden: "pic",
	}},
	Facts: func(p PICParams, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		if err := checkTriangles(in); err != nil {
			return nil, err
		}
		curves, lengths := recorded(p.facts(classResponses), in), p.facts("bytes")
		if ends := in["ends"]; ends["responses"] != "" && ends["variant"] != curves["variant"] {
			return nil, stages.BadField("variant", "variant is %s, but the ends were made with variant: %s",
				p.Variant, ends["variant"])
		}
		shares := []string{"0"}
		for _, t := range p.Thresholds {
			shares = append(shares, strconv.FormatFloat(t, 'g', -1, 64))
		}
		curves["shares"] = strings.Join(append(shares, "1"), ",")
		lengths["shares"] = curves["shares"]
		return map[string]stages.Facts{"curves": curves, "lengths": lengths}, nil
	},
	Run: func(ctx context.Context, p PICParams, e *stages.Env) error {
		n, err := program.Load(e)
		if err != nil {
			return err
		}
		return p.run(ctx, e, n, len(p.Thresholds), func(i int) ([][]bool, error) {
			mask, err := stages.DecodeTensor(e.In("mask", i))
			if err != nil {
				return nil, err
			}
			if mask.DType != stages.U8 || !slices.Equal(mask.Shape, []int{n.Height, n.Width}) {
				return nil, fmt.Errorf("a mask of %s %v doesn't match the model's %d×%d", mask.DType,
					mask.Shape, n.Height, n.Width)
			}
			ranks, err := ranksOf(e.In("maps", i), n.Height, n.Width, true)
			if err != nil || ranks.units == 0 {
				return nil, err
			}
			var points [][]bool
			for _, t := range p.Thresholds {
				points = append(points, shown(mask.Raw, ranks.of, atLeastQuantile(t, ranks.units)))
			}
			return points, nil
		}, func(i int, curve []response, lengths []float64) error {
			ends, bytes, err := decodeEnds(e, e.In("ends", i))
			if err != nil {
				return err
			}
			curve = slices.Concat(ends[:1], curve, ends[1:])
			lengths = slices.Concat(bytes[:1], lengths, bytes[1:])
			e.Put("curves", i, encodeCurve(e, curve))
			e.Put("lengths", i, stages.NewTensor(lengths, 1, len(lengths)).Encode())
			return nil
		})
	},
})

// atLeastQuantile returns how many of n different values are at least their quantile 1 − share, interpolated
// linearly between values: a pixel of rank r, the number of values above its own, is among them if r is less.
func atLeastQuantile(share float64, n int) int {
	return n - int(math.Ceil(float64(n-1)*(1-share)))
}

// shown returns the pixels of a mask, and those whose rank is less than count.
func shown(mask []uint8, ranks []float32, count int) []bool {
	out := make([]bool, len(mask))
	for i, m := range mask {
		out[i] = m != 0 || ranks == nil && count > 0 || ranks != nil && ranks[i] < float32(count)
	}
	return out
}
