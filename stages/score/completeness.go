package score

import (
	"context"
	"fmt"
	"math"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// CompletenessParams are the parameters of [Completeness].
type CompletenessParams struct {
	Reference string `yaml:"reference" declared:"maps" doc:"the image without what the map explains: zero after normalisation, black, or the images on the port baselines; of a text, the token that masks or the one that pads in the place of all but special tokens; declared: what the method declares" choices:"declared|zero|black|images|mask|pad"`
	Output    string `yaml:"output" declared:"maps" doc:"the explained output; declared: what the method declares" choices:"declared|logit|probability"`
	Target    string `yaml:"target" declared:"maps,targets" doc:"the explained class, unless targets is wired, as model/predict has it; declared: what the method declares"`
}

// Validate refuses a target that is malformed.
func (p CompletenessParams) Validate() error {
	if _, err := program.ParseExpression(p.Target); err != nil {
		return stages.BadField("target", "target: %w", err)
	}
	return nil
}

// Completeness is how far a map misses the axiom of completeness, of Sundararajan, Taly and Yan, "Axiomatic
// Attribution for Deep Networks", ICML 2017, section 3.
var Completeness = program.Stage(stages.Def[CompletenessParams]{
	Name: "score/completeness",
	Doc: `how far a map's sum misses the difference that it explains

A complete map sums to the output for the image less that for the reference. The error is
what it misses, as a share of the difference. Reference and output are what the method
declares, as is the explained class: runexp stages has them for each; where the method's
targets are wired, wire them here, too. A method that takes magnitudes of channels, or
explains an inner layer, declares none, and check refuses it. A map that a method makes of
a mean or a share of the difference has a large error by construction. Sundararajan, Taly
and Yan, "Axiomatic Attribution for Deep Networks", ICML 2017, section 3.`,
	Definition: stages.Definition{
		Formula: "|Σ a − (f(x) − f(b))| / |f(x) − f(b)|, the sum over all pixels and channels, b the " +
			"reference",
		Unit:     "the whole map",
		Operator: "the reference in the place of the image",
		Response: "the output that the method explains: logit or probability of the target",
		Reference: "the method's own: zero after normalisation, a black image, or those on its port " +
			"baselines",
		Aggregation: "none: one number for a map",
		Randomness:  "none",
		Undefined:   "where f(x) = f(b), and for a map with a value that isn't finite",
	},
	Version:  1,
	Relation: stages.Each,
	Device:   true,
	Passes:   stages.Passes{Forward: "≤ 1"},
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the explained model"},
		{Name: "images", Type: stages.Images, Texts: true, Doc: "the explained images, or texts"},
		{Name: "maps", Type: stages.Maps, Doc: "attribution maps, with all channels or their sum"},
		{Name: "targets", Type: stages.Targets, Optional: true, Else: "model/predict",
			Doc: "the explained classes, those on the method's port of this name; by default those of its " +
				"parameter target"},
		{Name: "labels", Type: stages.Labels, Optional: true, Doc: "explained if target is label"},
		{Name: "baselines", Type: stages.Images, Texts: true, Optional: true,
			Doc: "reference images: those on the method's port of this name"},
		{Name: "whole", Type: stages.Curves, Optional: true, Else: "perturb/response", Own: true,
			Doc: "the responses to the images, which all methods share"},
	},
	Outputs: []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the error, at least 0"}},
	Variants: []stages.Variant{{
		Item: "a number or a verdict", Default: "the relative error",
		Differs: "Quantus compares floating-point numbers by == and normalises the map by default, so that " +
			"its verdict is False for practically every map; captum's convergence delta is the difference " +
			"alone, in the unit of the output",
	}},
	Defaults: CompletenessParams{stages.AsDeclared, stages.AsDeclared, stages.AsDeclared},
	Check: func(p CompletenessParams, wired func(string) bool) error {
		x, err := program.ParseExpression(p.Target)
		switch {
		case err != nil:
			return stages.BadField("target", "target: %w", err)
		case wired("targets") && p.Target != stages.AsDeclared:
			return stages.BadField("target", "target is %s, but the port targets is wired and names the "+
				"explained class", p.Target)
		case !wired("targets") && x.Labelled() && !wired("labels"):
			return stages.BadField("target", "target is %s, but the port labels isn't wired", p.Target)
		}
		if err := p.checkReference(wired(stages.TextsName)); err != nil {
			return err
		}
		return stages.GoesWith("reference", p.Reference, "images", "baselines", wired("baselines"))
	},
	Facts: func(CompletenessParams, map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: "share", Direction: stages.Lower, High: math.Inf(1), Tolerance: 5e-3,
			ItemTolerance: 5e-2}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(ctx context.Context, p CompletenessParams, e *stages.Env) error { return p.run(ctx, e) },
})

// run puts the errors of all items. A constant reference is classified once for all.
func (p CompletenessParams) run(ctx context.Context, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	if p.Reference == stages.AsDeclared || p.Output == stages.AsDeclared {
		return fmt.Errorf("reference is %s and output is %s: name them", p.Reference, p.Output)
	}
	if err := p.checkReference(n.Text != nil); err != nil {
		return err
	}
	constant, rows := p.Reference == "zero" || p.Reference == "black", 1
	if !constant {
		rows = e.Len()
	}
	f, err := n.Forward(ctx, e.Slot, n.Fit(rows, e.Batch))
	if err != nil {
		return err
	}
	for i := range e.Len() {
		row := i % f.Batch
		if constant {
			row = 0
		}
		if row == 0 && (i == 0 || !constant) {
			for k := range min(f.Batch, e.Len()-i) {
				if err := p.reference(e, i+k, n, f.Image(k)); err != nil {
					return fmt.Errorf("item %q: %w", e.Calls[i+k].ID, err)
				}
			}
			if err := f.Run(ctx); err != nil {
				return err
			}
		}
		x, err := p.error(e, i, n, f.Row(row))
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		e.Put("scores", i, stages.Scalar(x))
		e.Done(1)
	}
	return nil
}

// checkReference refuses a reference that texts, or images, don't have.
func (p CompletenessParams) checkReference(texts bool) error {
	hides := p.Reference == "mask" || p.Reference == "pad"
	switch {
	case texts && (p.Reference == "zero" || p.Reference == "black"):
		return &stages.FieldError{Field: "reference", Hint: "give the method baseline: mask or baseline: pad",
			Err: fmt.Errorf("reference is %s, which is no text: the model's response to it isn't known",
				p.Reference)}
	case !texts && hides:
		return stages.BadField("reference", "reference is %s, which hides the tokens of texts: images have "+
			"pixels", p.Reference)
	}
	return nil
}

// reference writes the normalised reference of item i.
func (p CompletenessParams) reference(e *stages.Env, i int, n *program.Net, dst []float32) error {
	switch p.Reference {
	case "images":
		t, err := stages.DecodeTensor(e.In("baselines", i))
		if err == nil {
			err = n.Normalise(t, dst)
		}
		if err != nil {
			return fmt.Errorf("port baselines: %w", err)
		}
	case "mask", "pad":
		id, err := n.TextID("reference", p.Reference)
		if err != nil {
			return err
		}
		text, err := program.TokensOf(e, i)
		if err != nil {
			return err
		}
		hidden := text.Replaced(func(token int) bool { return !text.Special[token] }, id)
		return n.Normalise(hidden.Tensor(), dst)
	case "black":
		for k := range dst {
			dst[k] = n.Black(k / (n.Height * n.Width))
		}
	default:
		clear(dst)
	}
	return nil
}

// error returns the error of item i, given the model's outputs for its reference.
func (p CompletenessParams) error(e *stages.Env, i int, n *program.Net, row []float32) (float64, error) {
	target, err := n.Target(e.In("targets", i))
	if err != nil {
		return 0, fmt.Errorf("port targets: %w", err)
	}
	whole, err := stages.DecodeTensor(e.In("whole", i))
	if err == nil && (len(whole.Shape) != 2 || whole.Shape[0] < 2 && n.Head == nil || whole.Shape[1] < 1) {
		err = fmt.Errorf("a curve of shape %v has no response to the image", whole.Shape)
	}
	if err != nil {
		return 0, fmt.Errorf("port whole: %w", err)
	}
	m, err := stages.DecodeTensor(e.In("maps", i))
	if err != nil {
		return 0, fmt.Errorf("port maps: %w", err)
	}
	values, sum := m.Float64s(), 0.0
	for _, v := range values {
		sum += v
	}
	curve, points := whole.Float64s(), whole.Shape[1]
	difference := curve[0] - n.Probability(row, target) // of the first point
	if p.Output == "logit" && n.Head == nil {
		difference = curve[points] - n.Logit(row, target)
	}
	if difference == 0 || !metric.Defined(values) {
		return math.NaN(), nil
	}
	return math.Abs(sum-difference) / math.Abs(difference), nil
}
