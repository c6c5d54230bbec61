package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// DeepLIFTParams are the parameters of [DeepLIFT].
type DeepLIFTParams struct {
	Tapped
	Variant  string `yaml:"variant" doc:"how pools and Softmax are treated" choices:"paper|official"`
	Baseline string `yaml:"baseline" doc:"the reference: zero after normalisation, or a black image; at an inner layer its value for that image; of a text the mask or pad token. The port baselines overrides it" choices:"zero|black|mask|pad"`
}

// DeepLIFT is DeepLIFT with the Rescale rule.
var DeepLIFT = comparisonMethod("reference", 0, stages.Def[DeepLIFTParams]{
	Name: "attribute/deeplift",
	Doc: `how differences from a reference add up to the output

The model sees the image x and a reference, and every activation is compared. In the
backward pass a function of single elements multiplies by Δy/Δx in the place of its slope (where
|Δx| < 1e-10, by its slope), affine maps by their weights. What arrives, times Δ of the
pixel, is the map: Σ Cₖ = f(x) − f(reference). Shrikumar, Greenside and Kundaje, "Learning
Important Features Through Propagating Activation Differences", ICML 2017, equations 1
and 9 (Rescale).

The paper's networks have nothing but that. So that sums stay complete, here products
such as attention and gates multiply by the means, Δ(xy) = ȳΔx + x̄Δy, as do quotients,
LayerNormalization and Softmax, which are made of products and functions of elements;
GELU, SiLU and the like are one function each. Models with other mixtures, such as
InstanceNormalization or the larger of two values, are refused. With t = max(y, y_ref) a
pool gives t − y_ref to its largest element and y − t to that of the reference, over Δx; the
port completeness has what sums to more than the difference of the outputs, above all where
|Δx| is small there.`,
	Version:   2,
	Tolerance: kinks,
	Passes:    stages.Passes{Forward: "≤ 2", Backward: "1"},
	Variants: []stages.Variant{{
		Item: "pools and Softmax", Default: "variant: paper",
		Differs: "official is captum as it runs: its rule for pools takes part only where no activation " +
			"that it knows feeds the pool, which otherwise has the plain derivative, and Softmax " +
			"multiplies by Δy/Δx minus the mean of the line. What captum does to batches, whose images it " +
			"mixes up in pools, isn't followed",
		Golden: "captum",
	}},
	Declares: func(p DeepLIFTParams, in map[string]stages.Declared) stages.Declared {
		return p.compares(p.Baseline, in)
	},
	Defaults: DeepLIFTParams{Tapped: tapped(), Variant: "paper", Baseline: "zero"},
})

func (p DeepLIFTParams) check(wired func(string) bool) error {
	return p.checkCompared(p.Baseline, wired)
}

func (p DeepLIFTParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	references, err := baselinesOf(e, n, p.Baseline)
	if err != nil {
		return err
	}
	q, err := p.question(ctx, e, n, relevance.Policy{})
	if err != nil {
		return err
	}
	d, err := n.DeepLIFT(ctx, e.Slot, q, p.Variant == "official",
		n.Fit(references.longestRun(e.Len()), e.Batch))
	if err != nil {
		return err
	}
	for from, to := 0, 0; from < e.Len(); from = to {
		to = min(from+d.Batch, references.sameUntil(from, e.Len()))
		d.Reference(references.of(from))
		targets := make([]program.Target, to-from)
		for i := from; i < to; i++ {
			if targets[i-from], err = p.target(e, i, n); err != nil {
				return err
			}
			d.Explain(i-from, targets[i-from])
			if err := image(e, i, n, d.Image(i-from)); err != nil {
				return err
			}
		}
		if err := d.Run(ctx); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			row, t := i-from, targets[i-from]
			response, reference := p.response(n, d.Row(row), t), p.response(n, d.ReferenceAnswer(), t)
			excess := reference - response
			values, there := doubles(d.Value(row)), d.ReferenceValue()
			for k, m := range d.Multipliers(row) {
				values[k] = float64(m) * (values[k] - float64(there[k]))
				excess += values[k]
			}
			e.Put("completeness", i, stages.Scalar(excess))
			warnIncomplete(e, i, excess, response, reference, p.why(n))
			if err := p.put(e, i, n, values, d.Shape()); err != nil {
				return err
			}
		}
	}
	return nil
}

// why returns what may make a map incomplete.
func (p DeepLIFTParams) why(n *program.Net) string {
	why := "what has no slope, such as Round, Floor and the masks of comparisons, counts as constant, and " +
		"differences near 0 blow up pools"
	if n.Text != nil && p.Baseline == "pad" {
		why += "; a model that counts positions from tokens other than [PAD] has other positions in the " +
			"reference, whose part no token gets: baseline: mask keeps them"
	}
	return why
}
