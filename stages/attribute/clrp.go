package attribute

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// CLRPParams are the parameters of [CLRP].
type CLRPParams struct {
	Relevant
	NamedRules
	Variant  string `yaml:"variant" doc:"how much each other class counts: −1/(N−1) of N classes, as in the paper, or −1/N as with absLRP" choices:"paper|abslrp"`
	Positive bool   `yaml:"positive" doc:"keep what is positive of each value, before channels become one"`
}

// Validate refuses outputs and targets that can't be contrasted with other classes.
func (p CLRPParams) Validate() error {
	if p.Output == "probability" {
		return stages.BadField("output", "output: a probability is compared with the other classes "+
			"already; the other lrp methods explain it so")
	}
	if err := p.oneClass(); err != nil {
		return err
	}
	return p.refuseTwo(p.Relevant)
}

// declares returns nothing: the relevance is of a class compared with the others, and so of no output.
func (p CLRPParams) declares() stages.Declared { return nil }

// oneClass refuses a target that is a difference of classes already.
func (c Common) oneClass() error {
	if e, err := program.ParseExpression(c.Target); err == nil && e.Compares() {
		return stages.BadField("target",
			"target: %s is a difference of classes, which can't be contrasted with the others", c.Target)
	}
	return nil
}

// NamedRules are the parameters of methods that name their rules.
type NamedRules struct {
	FirstLayer
	Rules string `yaml:"rules" doc:"the rule of all layers with weights, or a preset of attribute/lrp-composite, whose rule for first layers holds if it has one" choices:"z-plus|epsilon|gamma|alpha2-beta1|epsilon-plus|epsilon-plus-flat|epsilon-alpha2-beta1|epsilon-alpha2-beta1-flat|epsilon-gamma-box"`
}

// refuseTwo refuses a rule for first layers together with a preset that has one.
func (r NamedRules) refuseTwo(p Relevant) error {
	if of, ok := presets[r.Rules]; ok && of.first != "same" && r.First != "same" {
		return stages.BadField("first", "first: rules %s have a rule for first layers", r.Rules)
	}
	return p.Tapped.Validate()
}

// firstRule returns the rule of the first layer, and the parameter that has it.
func (r NamedRules) firstRule() (rule, field, write string) {
	if of, ok := presets[r.Rules]; ok && of.first != "same" {
		return of.first, "rules", "rules: " + of.forTexts()
	}
	return r.FirstLayer.firstRule()
}

// CLRP is contrastive layer-wise relevance propagation.
var CLRP = conservingMethod(stages.Def[CLRPParams]{
	Name: "attribute/clrp",
	Doc: `layer-wise relevance of a class compared with all others

The relevance that starts at the explained class, minus that which starts in equal
parts at the others: evidence for all classes alike cancels. The rules don't depend on
what they carry, so that both are one walk that starts with 1 at the class and −1/(N−1)
at each other one, times the explained logit (start: logit). Gu, Yang and Tresp,
"Understanding Individual Decisions of CNNs via Contrastive Backpropagation", ACCV 2018,
section 3.2.`,
	Version:   1,
	Tolerance: kinks,
	Variants: []stages.Variant{{
		Item: "other classes", Default: "variant: paper",
		Differs: "with absLRP they count −1/N (variant: abslrp)",
		Golden:  "zennit_lrp",
	}, {
		Item: "sign", Default: "positive: false",
		Differs: "Gu et al. keep what is positive of the difference (positive: true); maps with both signs " +
			"tell what speaks against the class too",
		Golden: "",
	}},
	Defaults: CLRPParams{Relevant: relevant(), NamedRules: NamedRules{FirstLayer{"same"}, "z-plus"},
		Variant: "paper"},
})

func (p CLRPParams) propagation(n *program.Net) propagation {
	start := lower.StartOnes
	if p.Start == "logit" {
		start = lower.StartTarget
	}
	others := n.PerHead() - 1
	if p.Variant == "abslrp" {
		others++
	}
	return propagation{
		rules: p.named(n, p.Rules, p.FirstLayer).Policy(), start: start, positive: p.Positive,
		starts: []passStart{{name: "clrp " + p.Variant, counts: against(1, -1/float64(others))}},
	}
}

// named returns the composite of one rule for all layers but the first, or the preset called name.
func (p Relevant) named(n *program.Net, name string, first FirstLayer) relevance.LRP {
	of, ok := presets[name]
	if !ok {
		of = preset{name, name, "same"}
	}
	if first.First != "same" {
		of.first = first.First
	}
	return p.rules(n, of, 1e-6, 0.25)
}

// against returns a function that writes the weights of a target's class and of each other class.
func against(target, others float64) func(classes []float32, t program.Target) error {
	return func(classes []float32, t program.Target) error {
		if t.Minus >= 0 {
			return fmt.Errorf("the target is a difference of classes, which can't be contrasted with the " +
				"others")
		}
		for i := range classes {
			classes[i] = float32(others)
		}
		classes[t.Class] = float32(target)
		return nil
	}
}
