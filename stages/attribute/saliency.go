package attribute

import (
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// SaliencyParams are the parameters of [Saliency].
type SaliencyParams struct {
	Differentiated
	Abs bool `yaml:"abs" doc:"take each derivative's magnitude before channels become one"`
}

// Saliency is the derivative of the explained output.
var Saliency = backwardMethod(stages.Def[SaliencyParams]{
	Name: "attribute/saliency",
	Doc: `the derivative of the output with respect to each pixel

The derivative ∂f/∂x of the explained output with respect to the normalised image, or
its magnitude. Simonyan, Vedaldi and Zisserman, "Deep Inside Convolutional Networks",
ICLR 2014 workshop, section 3.`,
	Version:   2,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "sign and channels", Default: "abs: true, reduce: sum",
		Differs: "the paper takes the largest magnitude of the channels, captum the magnitude of each; the " +
			"code of MAS the magnitude of the signed sum (abs: false, reduce: abs-sum)",
		Golden: "captum",
	}},
	Declares: func(p SaliencyParams, _ map[string]stages.Declared) stages.Declared {
		if p.Abs {
			return nil
		}
		return p.declares(gradientMap, "")
	},
	Defaults: SaliencyParams{Differentiated: plain(tapped()), Abs: true},
})

func (p SaliencyParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putGradient(e, i, n, results[0], p.Abs)
}

// putGradient puts the map of item i: the elements of a result, or their magnitudes.
func (p Tapped) putGradient(e *stages.Env, i int, n *program.Net, result passResult, abs bool) error {
	values := doubles(result.Gradient)
	if abs {
		for k, v := range values {
			values[k] = math.Abs(v)
		}
	}
	return p.put(e, i, n, values, result.Shape)
}

func (p SaliencyParams) emit(m *emission) (out standalone.Numbers, err error) {
	result, err := m.one(p)
	if err != nil {
		return out, err
	}
	return m.putGradient(p.Tapped, result, p.Abs)
}
