package score

import (
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// SSIMParams are the parameters of [SSIM].
type SSIMParams struct {
	AgreementParams
	Normalise  string  `yaml:"normalise" doc:"max-abs divides each map by its largest magnitude; min-max stretches it to [0,1]" choices:"max-abs|min-max"`
	Window     string  `yaml:"window" doc:"weights of the window" choices:"gaussian|uniform"`
	Size       int     `yaml:"size" doc:"pixels along a side of the window, odd" min:"3" max:"101"`
	Sigma      float64 `yaml:"sigma" doc:"standard deviation of the gaussian window, in pixels" min:"0.1" max:"100"`
	Covariance string  `yaml:"covariance" doc:"of the population, or of a sample: n/(n-1) times that" choices:"population|sample"`
	K1         float64 `yaml:"k1" doc:"constant that steadies the comparison of means" min:"0" max:"1"`
	K2         float64 `yaml:"k2" doc:"constant that steadies the comparison of variances" min:"0" max:"1"`
}

// Validate rejects a window without a middle.
func (p SSIMParams) Validate() error {
	if p.Size%2 == 0 {
		return stages.BadField("size", "size is %d: a window has an odd number of pixels", p.Size)
	}
	return nil
}

// SSIM is the mean structural similarity of two maps, by which Adebayo et al., "Sanity checks for saliency
// maps", NeurIPS 2018, compare maps of a trained model and of a randomised one.
var SSIM = agreement(stages.Def[SSIMParams]{
	Name: "score/ssim",
	Doc: `structural similarity of two maps

1 for equal maps. The defaults are those of Wang et al., IEEE TIP 2004, which
scikit-image calls gaussian_weights=True, sigma=1.5, use_sample_covariance=False; its
own defaults are window: uniform, size: 7, covariance: sample. A window larger than the
maps is an error.`,
	Definition: stages.Definition{
		Formula: "the mean over windows inside the maps of (2μₓμᵧ + c₁)(2σₓᵧ + c₂) / ((μₓ² + μᵧ² + " +
			"c₁)(σₓ² + σᵧ² + c₂)), c = (kL)², with maps divided by their largest magnitude and L their " +
			"range: 1, or 2 for signed values",
		Unit:        "a window of size×size pixels",
		Operator:    "that of the other map's making: randomised weights, another class, a draw",
		Response:    "the method's maps",
		Reference:   "the other map",
		Aggregation: "the mean over windows",
		Randomness:  "none, besides that of the maps",
		Undefined: "for a map of zeros, with normalise: min-max for a constant one, and for one with a " +
			"value that isn't finite",
	},
	Variants: []stages.Variant{{
		Item: "window", Default: "window: gaussian, size: 11, sigma: 1.5",
		Differs: "scikit-image's default is a uniform window of 7 pixels with the covariance of a sample",
	}},
	Defaults: SSIMParams{AgreementParams{metric.Magnitude, string(stages.Lower)}, "max-abs", "gaussian",
		11, 1.5, "population", 0.01, 0.03},
}, func(p SSIMParams) AgreementParams { return p.AgreementParams },
	func(p SSIMParams, x, y []float64, height, width int) (float64, error) {
		if p.Size > min(height, width) {
			return 0, fmt.Errorf("a window of %d pixels doesn't fit into maps of %d×%d", p.Size, height,
				width)
		}
		s := metric.SSIM{Window: metric.UniformWindow(p.Size), Sample: p.Covariance == "sample", K1: p.K1,
			K2: p.K2, Range: 1}
		if p.Window == "gaussian" {
			s.Window = metric.GaussianWindow(p.Size, p.Sigma)
		}
		if p.Normalise == "max-abs" && p.Values == metric.Signed {
			s.Range = 2
		}
		p.stretch(x)
		p.stretch(y)
		return s.Of(x, y, height, width), nil
	})

// stretch normalises a map; one that can't be becomes NaN.
func (p SSIMParams) stretch(v []float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range v {
		low, high = math.Min(low, x), math.Max(high, x)
	}
	if p.Normalise == "max-abs" {
		low, high = 0, math.Max(high, -low)
	}
	for i, x := range v {
		v[i] = (x - low) / (high - low)
	}
}
