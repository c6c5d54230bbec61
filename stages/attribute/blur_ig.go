package attribute

import (
	"context"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// BlurIGParams are the parameters of [BlurIG].
type BlurIGParams struct {
	Common
	Balanced
	Steps    int     `yaml:"steps" doc:"number of derivatives along the path" min:"1" max:"100000"`
	MaxSigma float64 `yaml:"max_sigma" doc:"the standard deviation of the strongest blur, in pixels; with spacing: sqrt its square" min:"0.01" max:"10000"`
	Spacing  string  `yaml:"spacing" doc:"equal steps of the standard deviation, or of its square" choices:"linear|sqrt"`
	GradStep float64 `yaml:"grad_step" doc:"the step of sigma in the difference quotient that stands for the path's tangent; 0 is the derivative itself" min:"0" max:"1"`
}

// BlurIG is integrated gradients along a path of blurred images.
var BlurIG = completeMethod("the blurred image", 1e-1, stages.Def[BlurIGParams]{
	Name: "attribute/blur-ig",
	Doc: `integrated gradients on a path from the blurred image

−Σ ∂f/∂L·∂L/∂σ·Δσ, where L is the image blurred by a Gaussian of standard deviation σ, from
the image itself to a strong blur: what each pixel adds to the output as details appear.
No baseline is chosen, and no new colours arise. The Gaussian is truncated at 4σ, and
beyond the image are zeros, both after normalisation. Xu, Venugopalan and Sundararajan,
"Attribution in Scale and Space", CVPR 2020, equation 6, with the steps of the authors'
code.`,
	Version:   1,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "steps + 1", Backward: "steps + 1"},
	Variants: []stages.Variant{{
		Item: "the tangent", Default: "grad_step: 0.01",
		Differs: "the paper has the derivative (grad_step: 0); where 4σ passes a half the window of the " +
			"difference's two Gaussians differs, as in the authors' code, which weights all points of a " +
			"batch with the step of its last where spacing is sqrt",
		Golden: "paths.npz",
	}},
	Declares: func(p BlurIGParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "")
	},
	Inputs:   imageInputs("tokens can't be blurred: use attribute/integrated-gradients"),
	Defaults: BlurIGParams{Common: common(), Steps: 100, MaxSigma: 50, Spacing: "linear", GradStep: 0.01},
})

func (p BlurIGParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	q, err := p.atImage(ctx, e, n, p.Common)
	if err != nil {
		return err
	}
	sigmas := p.sigmas()
	b, err := n.Blurred(ctx, e.Slot, q, n.Fit(len(sigmas), e.Batch))
	if err != nil {
		return err
	}
	x := make([]float32, n.Size())
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err != nil {
			return err
		}
		if err := image(e, i, n, x); err != nil {
			return err
		}
		b.Set(t, x)
		var first, last float64 // the responses for the image, and for the strongest blur
		for k := 0; k < len(sigmas); k += b.Batch {
			some := sigmas[k:min(k+b.Batch, len(sigmas))]
			weights := make([]float64, len(some))
			for row, sigma := range some {
				p.blur(n, b, row, sigma)
				if at := k + row + 1; at < len(sigmas) {
					weights[row] = sigma - sigmas[at] // the strongest blur ends the path
				}
			}
			if err := b.Run(ctx, weights); err != nil {
				return err
			}
			if k == 0 {
				first = p.response(n, b.Row(0), t)
			}
			last = p.response(n, b.Row(len(some)-1), t)
		}
		values := doubles(b.Sum())
		excess := totalOf(values) - (first - last)
		e.Put("completeness", i, stages.Scalar(excess))
		p.warnIncomplete(e, i, excess, first, last, "more steps reduce the error")
		putMap(e, i, p.reduced(values, n.Channels, n.Height, n.Width))
	}
	return nil
}

// sigmas returns the standard deviations along the path, from 0 for the image to the strongest blur.
func (p BlurIGParams) sigmas() []float64 {
	out := make([]float64, p.Steps+1)
	for k := range out {
		if out[k] = float64(k) * p.MaxSigma / float64(p.Steps); p.Spacing == "sqrt" {
			out[k] = math.Sqrt(out[k])
		}
	}
	return out
}

// blur sets the matrices of a row, for the blur of a standard deviation.
func (p BlurIGParams) blur(n *program.Net, b program.Blurred, row int, sigma float64) {
	columns, rows, columnSlopes, rowSlopes, rowsAhead := b.Matrices(row)
	k := gaussian(sigma, max(n.Height, n.Width))
	ahead, slope := k, slopeOfGaussian(k, sigma)
	if p.GradStep > 0 {
		ahead = gaussian(sigma+p.GradStep, len(k))
		for i := range slope {
			slope[i] = (ahead[i] - k[i]) / p.GradStep
		}
	}
	toeplitz(k, columns)
	toeplitz(k, rows)
	toeplitz(slope, columnSlopes)
	toeplitz(slope, rowSlopes)
	toeplitz(ahead, rowsAhead)
}

// gaussian returns the first n weights of a Gaussian, by distance from its centre. It is truncated where
// scipy's is, at 4 standard deviations, rounded; the weights on both sides sum to 1.
func gaussian(sigma float64, n int) []float64 {
	weights := make([]float64, n)
	if sigma == 0 {
		weights[0] = 1
		return weights
	}
	sum := 0.0
	for k := int(4*sigma + 0.5); k >= 0; k-- {
		w := math.Exp(-0.5 * float64(k*k) / (sigma * sigma))
		if sum += w; k > 0 {
			sum += w
		}
		if k < n {
			weights[k] = w
		}
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

// slopeOfGaussian returns the derivatives with respect to sigma of a Gaussian's weights, for the same window.
func slopeOfGaussian(weights []float64, sigma float64) []float64 {
	slope := make([]float64, len(weights))
	if sigma == 0 {
		return slope // to all orders
	}
	// w = v/Σv with ∂v/∂σ = v·k²/σ³: so ∂w/∂σ is w times k²/σ³ less its mean, over the whole window.
	mean, sum := 0.0, 0.0
	for k := int(4*sigma + 0.5); k > 0; k-- {
		w := math.Exp(-0.5 * float64(k*k) / (sigma * sigma))
		sum += 2 * w
		mean += float64(2 * w * float64(k*k))
	}
	mean /= sum + 1
	for k, w := range weights {
		slope[k] = w * (float64(k*k) - mean) / (sigma * sigma * sigma)
	}
	return slope
}

// toeplitz writes the square matrix whose value at row i and column j is that of their distance.
func toeplitz(byDistance []float64, dst []float32) {
	side := int(math.Sqrt(float64(len(dst))))
	for i := range side {
		for j := range side {
			dst[i*side+j] = float32(byDistance[max(i-j, j-i)])
		}
	}
}
