package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// LRPCompositeParams are the parameters of [LRPComposite].
type LRPCompositeParams struct {
	Relevant
	Preset  string  `yaml:"preset" doc:"the rules of Conv layers, and of first ones" choices:"epsilon-plus|epsilon-plus-flat|epsilon-alpha2-beta1|epsilon-alpha2-beta1-flat|epsilon-gamma-box"`
	Epsilon float64 `yaml:"epsilon" doc:"of the epsilon-rule, which other layers with weights follow" min:"0" max:"1000"`
	Gamma   float64 `yaml:"gamma" doc:"of the gamma-rule, in epsilon-gamma-box" min:"0" max:"1000000"`
}

// LRPComposite is LRP with different rules for different layers.
var LRPComposite = conservingMethod(stages.Def[LRPCompositeParams]{
	Name: "attribute/lrp-composite",
	Doc: `layer-wise relevance by different rules for different layers

Fully connected layers follow the ε-rule, Conv layers that of the preset: z⁺ (plus), α =
2 and β = 1, or γ; the layers that read the image the flat rule or the zB-rule (box), which
knows that pixels lie between black and white. Montavon et al., "Layer-Wise Relevance
Propagation: An Overview", 2019, section 10.3; Kohlbrenner et al., "Towards Best Practice
in Explaining Neural Network Decisions with LRP", IJCNN 2020.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "presets", Default: "preset: epsilon-plus-flat, epsilon: 1e-6, gamma: 0.25",
		Differs: "as in Zennit, whose composites start with 1 (start: one-hot); the papers change the rule " +
			"along the depth, and take ε relative to the mean activation",
		Golden: "zennit_lrp",
	}},
	Defaults: LRPCompositeParams{Relevant: relevant(), Preset: "epsilon-plus-flat", Epsilon: 1e-6,
		Gamma: 0.25},
})

// firstRule returns the rule of the preset for the first layer.
func (p LRPCompositeParams) firstRule() (rule, field, write string) {
	of := presets[p.Preset]
	return of.first, "preset", "preset: " + of.forTexts()
}

func (p LRPCompositeParams) propagation(n *program.Net) propagation {
	c := p.rules(n, presets[p.Preset], p.Epsilon, p.Gamma)
	return propagation{rules: c.Policy(), start: p.start()}
}

// A preset is the names of rules: of Conv layers, of other layers with weights, and of the layers that read
// the image.
type preset struct{ conv, dense, first string }

var presets = map[string]preset{
	"epsilon-plus":              {"z-plus", "epsilon", "same"},
	"epsilon-plus-flat":         {"z-plus", "epsilon", "flat"},
	"epsilon-alpha2-beta1":      {"alpha2-beta1", "epsilon", "same"},
	"epsilon-alpha2-beta1-flat": {"alpha2-beta1", "epsilon", "flat"},
	"epsilon-gamma-box":         {"gamma", "epsilon", "box"},
}

// forTexts returns the name of the preset without a rule for first layers, with the same one for the others;
// models of texts hardly have the Conv layers of one with γ.
func (of preset) forTexts() string {
	if of.conv == "alpha2-beta1" {
		return "epsilon-alpha2-beta1"
	}
	return "epsilon-plus"
}

// rules returns the composite of a preset for a net.
func (p Relevant) rules(n *program.Net, of preset, epsilon, gamma float64) relevance.LRP {
	s := float32(p.Stabiliser)
	named := map[string]relevance.LayerRule{
		"z-plus":       relevance.ZPlus(s),
		"epsilon":      relevance.Epsilon(float32(epsilon)),
		"gamma":        relevance.Gamma(float32(gamma), s),
		"alpha2-beta1": relevance.AlphaBeta(2, 1, s),
	}
	return p.composite(named[of.conv], named[of.dense], FirstLayer{of.first}.rule(n, s))
}
