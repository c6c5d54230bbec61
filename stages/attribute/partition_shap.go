package attribute

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// PartitionSHAPParams are the parameters of [PartitionSHAP].
type PartitionSHAPParams struct {
	Common
	Hidden
	Evaluations int    `yaml:"evaluations" doc:"forward passes of partly hidden images; an odd number is rounded up" min:"2" max:"10000000"`
	AtOnce      int    `yaml:"at_once" doc:"how many rectangles are halved before the next are chosen: 5 are shap's batch of 10 images" min:"1" max:"4096"`
	Leaves      string `yaml:"leaves" doc:"where halving ends: at pixels, whose channels are hidden together, or at the values of their channels, as in shap" choices:"pixels|values"`
}

// PartitionSHAP is the explainer Partition of the library shap, its default for images.
var PartitionSHAP = method(stages.Def[PartitionSHAPParams]{
	Name: "attribute/partition-shap",
	Doc: `effects of nested halves, the default of shap for images

Owen values: the Shapley values of a game whose coalitions follow a tree. The image is
halved along its longer side, and so are its halves. The effect of a rectangle is the rise
of the explained output when it is shown; its halves share it, each shown before the other
and after. The rectangles of the largest effect are halved first, until all evaluations
are used; the pixels of one that isn't halved have equal parts of its effect. A map sums
to the output for the image minus that for the substrate. Of a text the tokens that aren't
special are halved, and the special ones get 0. Lundberg and Lee, "A Unified
Approach to Interpreting Model Predictions", NeurIPS 2017, in the library shap.`,
	Version: 1,
	Passes:  stages.Passes{Forward: "≤ evaluations + 2 × at_once"},
	Variants: []stages.Variant{{
		Item: "leaves of the tree", Default: "leaves: pixels",
		Differs: "shap halves a pixel's channels too, which leaves: values does",
	}, {
		Item: "rectangles of equal effect", Default: "the one that came first",
		Differs: "shap draws numbers without a seed, so that its maps differ from run to run where " +
			"effects are equal, as in flat regions",
	}, {
		Item: "substrate", Default: "box-blur, kernel 128, in normalised values",
		Differs: "shap blurs the values that its user passes, and rounds those of type uint8; its " +
			"inpainting isn't here, wire its images to the port substrates",
	}},
	Inputs: append(inputs(), substratesPort()),
	Declares: func(p PartitionSHAPParams, _ map[string]stages.Declared) stages.Declared {
		return p.declares(contributionMap, p.reference())
	},
	Defaults: PartitionSHAPParams{Common: common(), Hidden: Hidden{Substrate: "box-blur", Kernel: 128},
		Evaluations: 500, AtOnce: 5, Leaves: "pixels"},
})

func (p PartitionSHAPParams) check(wired func(string) bool) error {
	if err := p.Common.check(wired); err != nil {
		return err
	}
	return p.Hidden.check(wired)
}

func (p PartitionSHAPParams) run(ctx context.Context, e *stages.Env, n *program.Net) error {
	masked, planes := n.Masked, 1
	if p.Leaves == "values" {
		masked, planes = n.MaskedValues, n.Channels
	}
	m, err := masked(ctx, e.Slot, n.Fit(p.Evaluations, min(e.Batch, 2*p.AtOnce)))
	if err != nil {
		return err
	}
	if n.Text != nil && p.Leaves == "values" {
		return stages.BadField("leaves", "leaves is values, but a token has none: write leaves: pixels")
	}
	image, hidden := make([]float32, n.Size()), make([]float32, n.Size())
	for i := range e.Len() {
		t, err := p.target(e, i, n)
		if err == nil {
			err = imageOn("images", e, i, n, image)
		}
		if err == nil {
			err = p.fill(e, i, n, image, hidden)
		}
		if err != nil {
			return err
		}
		m.Set(image, hidden)
		at, err := view{height: n.Height, width: n.Width}.places(e, i, n)
		if err != nil {
			return err
		}
		whole := box{bottom: at.height, right: at.width, last: planes}
		if whole.size() == 0 {
			putMap(e, i, p.reduced(make([]float64, n.Height*n.Width), 1, n.Height, n.Width))
			continue
		}
		search := owen{whole: whole, evaluations: p.Evaluations, atOnce: p.AtOnce, batch: m.Batch}
		search.respond = func(ctx context.Context, batch []*coalition) ([]float64, error) {
			for row, c := range batch {
				if at.words == nil {
					c.render(whole, m.Mask(row))
					continue
				}
				c.render(whole, at.mask)
				at.write(m.Mask(row))
			}
			if err := m.Run(ctx); err != nil {
				return nil, err
			}
			responses := make([]float64, len(batch))
			for row := range responses {
				responses[row] = p.response(n, m.Row(row), t)
			}
			return responses, nil
		}
		values, err := search.solve(ctx)
		if err != nil {
			return err
		}
		putMap(e, i, p.reduced(at.spread(values), planes, n.Height, n.Width))
	}
	return nil
}
