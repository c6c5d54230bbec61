package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// InputXGradientParams are the parameters of [InputXGradient].
type InputXGradientParams struct{ Differentiated }

// InputXGradient is the derivative times the value where it is taken.
var InputXGradient = backwardMethod(stages.Def[InputXGradientParams]{
	Name: "attribute/input-x-gradient",
	Doc: `the normalised image times the derivative there

The drop of the output if each pixel went to zero and the model were linear.
Zero is the mean colour for most normalisations, not black. Shrikumar et al., "Not
Just a Black Box: Learning Important Features Through Propagating Activation
Differences", 2016.`,
	Version:   2,
	Tolerance: kinks,
	Declares: func(p InputXGradientParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, "zero")
	},
	Defaults: InputXGradientParams{plain(tapped())},
})

func (p InputXGradientParams) combine(e *stages.Env, i int, n *program.Net, results []passResult) error {
	return p.putProduct(e, i, n, results[0])
}

// putProduct puts the map of item i: values times the elements of a result.
func (p Tapped) putProduct(e *stages.Env, i int, n *program.Net, result passResult) error {
	values := doubles(result.Gradient)
	for k, v := range result.Value {
		values[k] *= float64(v)
	}
	return p.put(e, i, n, values, result.Shape)
}

func (p InputXGradientParams) emit(m *emission) (out standalone.Numbers, err error) {
	result, err := m.one(p)
	if err != nil {
		return out, err
	}
	return m.put(p.Tapped, result.gradient.Times(result.value))
}
