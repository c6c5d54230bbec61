// Package perturb has the stages that replace the pixels of an image step by step, in the order of a map's
// ranks, and record the model's response.
//
// Insertion, deletion, ablation and region (insertion.go …) are presets of one implementation: perturb.go has
// their parameters and ports, points.go the points of a curve, order.go the order in which pixels, regions or
// segments are replaced, substrate.go the replacing pixels, and blending.go runs them. They blend image and
// substrate in the graph, where a point is a single number, and cells on the same maps share the points that
// they have in common. text.go replaces or removes tokens of texts. road.go imputes the replaced pixels from
// their neighbours instead. segments.go makes the segments of images.
//
// subset.go replaces random subsets of the units instead, whatever the map; subset_draw.go draws them, and
// subset_text.go replaces those of tokens.
//
// pic.go shows the most relevant pixels and measures the information in the image, pic_ends.go does so for
// the ends of its curves, and partial_image.go makes the images for both, which collector.go classifies in
// batches.
//
// Curves have these facts:
//
//   - responses: the names of the rows, "probability,logit,correct", of texts also "changed": how many tokens
//     have been replaced, or inserted.
//   - order: "insertion", "deletion", "morf", "lerf" or "random"; "information" on those of perturb/pic,
//     "masked" on those of perturb/soft-mask, "whole" on those of perturb/response. An insertion starts at
//     the substrate, a curve over information at the random pixels, any other at the image.
//   - direction: whether a larger area under the curve is better: "higher", "lower"; "none" in random order.
//   - unit: what is replaced, "region", "segment" or, of texts, "token"; absent for pixels.
//   - shares: the share of the units that is replaced, or inserted, at each point, as "0,0.1,0.25": the
//     requested one, even if it is rounded down to whole units. It is absent if the points are equidistant
//     from 0 to 1, up to rounding and a smaller last step.
//   - step_pixels: how many pixels are replaced from one point to the next; absent if units aren't pixels,
//     steps differ, or the curve ends before the last pixel.
//   - imputation: "noisy-linear" on the curves of perturb/road; absent where a substrate replaces pixels.
//     Their variant is "official" if the shares, except at the first point, are those of the kept pixels.
//
// The curve of a map without an order is NaN.
package perturb

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// Params are the parameters common to the stages that blend images with a substrate.
type Params struct {
	stages.Precise
	Substrate string    `yaml:"substrate" doc:"what replaces the image's pixels: the blurred image, zero after normalisation, black pixels, the mean over channels of the model's means as a normalised value, uniform noise in [0,1) as normalised values, the mean of each channel of the image, that of each channel of the region or segment, or the images on the port substrates; of texts, whose special tokens stay, the token that masks or the one that pads, which the model attends to, or removal, by which the other tokens move up" choices:"blur|zero|black|mean|random|channel-mean|segment-mean|images|mask|pad|removal"`
	Kernel    int       `yaml:"kernel" doc:"blur: side of the kernel in pixels, odd" min:"1" max:"1023"`
	Sigma     float64   `yaml:"sigma" doc:"blur: standard deviation of the kernel in pixels" min:"0.01" max:"1000"`
	Step      int       `yaml:"step" doc:"pixels, regions or segments replaced per step; 0: see steps" min:"0"`
	Steps     int       `yaml:"steps" doc:"number of steps of equal size, unless step is given; 0: as many pixels per step as the image's longer side has, or one region; 10 steps of a text" min:"0"`
	Values    string    `yaml:"values" doc:"the order of pixels: by the magnitude or the signed value of the sum over channels; of texts also positive, by which tokens that aren't are neither removed nor inserted" choices:"magnitude|signed|positive"`
	Ties      string    `yaml:"ties" doc:"the order of pixels of equal value: row by row, which favours the top left and leaves a constant map without an order, or random, drawn for each map" choices:"index|random"`
	Unit      string    `yaml:"unit" key:"added" doc:"what is replaced at once: pixels, of a text its tokens, square regions, or the segments on the port segments, these two in the order of their mean" choices:"pixel|region|segment"`
	Region    int       `yaml:"region" key:"added" doc:"unit region: their side in pixels; the right and the lower border cut them off" min:"1" max:"1024"`
	Target    string    `yaml:"target" key:"added" doc:"whose response is recorded, unless targets is wired: the class, as model/predict has it, or an expression of the model's outputs, such as sum(output[3])"`
	Limit     int       `yaml:"limit" key:"added" doc:"pixels or regions replaced at the end of the curve; 0: all" min:"0"`
	Shares    []float64 `yaml:"shares" key:"added" doc:"the shares replaced at the points after the first, rounded down to whole pixels, regions or segments, instead of step and steps" min:"0" max:"1"`
}

func defaults(substrate string) Params {
	return Params{Substrate: substrate, Kernel: 11, Sigma: 11, Values: "magnitude", Ties: "index",
		Unit: "pixel", Region: 9, Target: program.PredictedClass}
}

// Validate rejects kernels without a centre, malformed targets, and parameters that exclude each other.
func (p Params) Validate() error {
	if err := validTarget(p.Target); err != nil {
		return err
	}
	switch {
	case p.Kernel%2 == 0:
		return stages.BadField("kernel", "kernel is %d: its side must be odd to have a centre", p.Kernel)
	case p.Limit > 0 && len(p.Shares) > 0:
		return stages.BadField("limit", "limit is %d, but shares say where the curve ends: leave one out",
			p.Limit)
	case p.Unit != "segment":
	case p.Limit > 0:
		return stages.BadField("limit", "limit is %d, but images have different numbers of segments: give "+
			"shares instead", p.Limit)
	case p.Step > 0 || p.Steps == 0 && len(p.Shares) == 0:
		return stages.BadField("unit", "images have different numbers of segments: give steps or shares, "+
			"so that all curves have as many points")
	}
	return nil
}

// checkCurve validates the parameters of a curve against the wired ports.
func (p Params) checkCurve(d direction, wired func(string) bool) error {
	if err := checkTarget(p.Target, wired); err != nil {
		return err
	}
	if wired(stages.TextsName) {
		return p.checkTexts(d)
	}
	if p.Values == metric.Positive {
		return stages.BadField("values", "values is positive, which leaves out tokens of texts: images have "+
			"pixels, of which all are ordered")
	}
	return p.check(wired)
}

// check validates units and substrates of images against the wired ports.
func (p Params) check(wired func(string) bool) error {
	if err := checkUnits(p.Substrate, p.Unit, false); err != nil {
		return err
	}
	err := stages.GoesWith("substrate", p.Substrate, "images", "substrates", wired("substrates"))
	if err != nil {
		return err
	}
	if p.Substrate == "segment-mean" && p.Unit == "pixel" {
		return stages.BadField("substrate", "substrate is segment-mean, but the mean of a pixel is the "+
			"pixel: unit is region or segment")
	}
	return stages.GoesWith("unit", p.Unit, "segment", "segments", wired("segments"))
}

// inputs are the ports of all stages of the package.
func inputs() []stages.Port {
	return []stages.Port{
		program.ModelPort("the classifier"),
		{Name: "images", Type: stages.Images, Doc: "the images, of the model's size"},
		{Name: "maps", Type: stages.Ranks, Accepts: &stages.Maps, Via: "maps/rank",
			Doc: "attribution maps"},
		{Name: "targets", Type: stages.Targets,
			Doc:      "the class whose response is recorded; default: the prediction for the original image",
			Optional: true, Else: "model/predict"},
		{Name: "labels", Type: stages.Labels,
			Doc: "the class for correctness; default: the target", Optional: true},
	}
}

// blendInputs are the ports of the stages that blend images with a substrate.
func blendInputs() []stages.Port {
	ports := inputs()
	ports[1].Texts, ports[1].Doc = true, "the images, of the model's size, or texts"
	return append(ports,
		stages.Port{Name: "substrates", Type: stages.Images, Optional: true, Added: true,
			Doc: "substrate images: what replaces the pixels of each image"},
		stages.Port{Name: "segments", Type: stages.Segments, Optional: true, Added: true,
			Doc: "unit segment: which segment each pixel is of"})
}

func outputs() []stages.Port {
	return []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "probability, logit and correctness of the class at every step"}}
}
