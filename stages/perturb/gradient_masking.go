package perturb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// The variants of gradient masking: the paper, and the authors' code of December and January 2024.
const (
	paperMasking       = "paper"
	officialMasking    = "official"
	january2024Masking = "official-2024-01"
)

// GradientMaskingParams are the parameters of [GradientMasking].
type GradientMaskingParams struct {
	Steps   int    `yaml:"steps" doc:"T, the masked images of a sequence; official counts the unmasked one, and masks T − 1 times" min:"2" max:"200"`
	Variant string `yaml:"variant" doc:"how much a step masks, and how impacts add up: another 1/(T + 1) of the image's elements, and impacts as they are (paper); of elements that may be masked already, t/T at step t (official) or 1/T to 1 − 1/T in equal steps (official-2024-01), and impacts of each image with the sum 1" choices:"paper|official|official-2024-01"`
}

// GradientMasking masks an image step by step, the elements of the largest impact first (MoRF) and those of
// the least (LeRF), after Vukadin, Afrić, Šilić and Delač, "Advancing Attribution-Based Neural Network
// Explainability through Relative Absolute Magnitude Layer-Wise Relevance Propagation and Multi-Component
// Evaluation", section 3.2. The impact of an element x is |x·∂f/∂x| in the image as masked so far; a masked
// element is 0 after normalisation.
//
// The images of both sequences are stored as the step at which each element goes; [Masked] makes them.
// The port outputs has the responses morf and lerf, f at each state, the unmasked image's first; impact
// [C,H,W] has I_LeRF − I_MoRF, where I is the sum of the impacts at a sequence's states. Under the official
// variants the impacts of a state have the sum 1, and so has I.
var GradientMasking = program.Stage(stages.Def[GradientMaskingParams]{
	Name: "perturb/gradient-masking",
	Doc: `two sequences of images, masked by the gradient

At every step the elements of the image (pixels' channels) with the largest |x·∂f/∂x| are
set to zero, and in a second sequence those with the smallest; f is the target's logit.
Global Attribution Evaluation compares a method's maps along both: perturb/masked makes
the images of a step, score/gae the score. The impact is the sum of |x·∂f/∂x| along the
second sequence minus that along the first, element by element: positive where the model
looks.

  masking: {uses: perturb/gradient-masking, in: {model: model, images: images}, with: {steps: 10}}
  masked:
    uses: perturb/masked
    matrix: [step]
    in: {model: model, images: images, removals: {order: {morf: masking.morf, lerf: masking.lerf}}}
    with: {step: "${step}"}

Vukadin et al., "Advancing Attribution-Based Neural Network Explainability through
Relative Absolute Magnitude Layer-Wise Relevance Propagation", 2024, section 3.2.`,
	Definition: stages.Definition{
		Formula: "at each of T steps 1/(T + 1) of the elements become 0, those with the largest " +
			"|x·∂f/∂x| (morf) or the smallest (lerf); impact = Σ over images of |x·∂f/∂x| along LeRF − " +
			"along MoRF",
		Unit:        "an element of the image: a channel of a pixel",
		Operator:    "0 after normalisation",
		Response:    "the explained class's logit f and its gradient",
		Reference:   "the opposite order",
		Aggregation: "sums over the images of a sequence",
		Randomness:  "none",
		Undefined:   "never",
	},
	Version: 3,
	// the order of the derivatives decides which elements a step masks, and so which image the next step
	// sees
	Tolerance: 0.5,
	Passes:    stages.Passes{Forward: "2 × steps + 1", Backward: "2 × steps + 1"},
	Relation:  stages.Each,
	Device:    true,
	Inputs: []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "the images, of the model's size"},
		{Name: "targets", Type: stages.Targets,
			Doc:      "the class whose logit is f; default: the prediction for the original image",
			Optional: true, Else: "model/predict"},
	},
	Outputs: []stages.Port{
		{Name: "morf", Type: stages.Removals, Doc: "the step that masks each element, largest impact first"},
		{Name: "lerf", Type: stages.Removals, Doc: "the same, smallest impact first"},
		{Name: "outputs", Type: stages.Curves, Doc: "the target's logit at every state of both sequences"},
		{Name: "impact", Type: stages.Maps, Doc: "I_c = impact_lerf − impact_morf, positive where the " +
			"model looks"},
		{Name: "impact_morf", Type: stages.Maps, Doc: "sum of the impacts along MoRF; the sum over its " +
			"elements is 1 under the official variants"},
		{Name: "impact_lerf", Type: stages.Maps, Doc: "the same along LeRF"},
	},
	Defaults: GradientMaskingParams{Steps: 10, Variant: paperMasking},
	Variants: []stages.Variant{{
		Item: "how many elements a step masks", Default: "variant: paper, 1/(T + 1) of the image",
		Differs: "the paper masks the top k percent at every step and doesn't state k: with k = 100/T the " +
			"last images would be empty and count nothing; in the official code step t masks t·10 % of all " +
			"elements, which by MoRF are all after four steps, and by LeRF t·10 % together, since masked " +
			"elements have no impact; the version of January 2024 masks from 10 % to 90 % in this way",
		Golden: "gae",
	}, {
		Item: "how many steps", Default: "variant: paper, T masked images, T = 10",
		Differs: "the official code has T images with the unmasked one, thus T − 1 steps; that of January " +
			"2024 has T steps",
		Golden: "gae",
	}, {
		Item: "sum of the impacts", Default: "variant: paper, |x·∂f/∂x| of each image as it is",
		Differs: "both official versions scale the impacts of every image to the sum 1 before they add " +
			"them, and the sum of a sequence again before the difference, whose sign alone is used",
		Golden: "gae",
	}},
	Facts: func(p GradientMaskingParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		sequence := func(order string) stages.Facts {
			return stages.Facts{"order": order, "states": strconv.Itoa(p.masks() + 1)}
		}
		return map[string]stages.Facts{
			"morf": sequence(morf.name), "lerf": sequence(lerf.name), "outputs": p.outputFacts(),
		}, nil
	},
	Run: runGradientMasking,
})

// outputFacts describes the outputs, with the masked shares where these are the same for both sequences.
func (p GradientMaskingParams) outputFacts() stages.Facts {
	f := stages.Facts{"responses": "morf,lerf"}
	if p.Variant == paperMasking {
		var shares []string
		for k := range p.Steps + 1 {
			shares = append(shares, strconv.FormatFloat(float64(k)/float64(p.Steps+1), 'g', -1, 64))
		}
		f["shares"] = strings.Join(shares, ",")
	}
	return f
}

// masks returns how often a sequence is masked.
func (p GradientMaskingParams) masks() int {
	if p.Variant == officialMasking {
		return p.Steps - 1
	}
	return p.Steps
}

// counts returns how many of n elements each step masks: of those that aren't masked yet in the paper's
// reading, of all in the code.
func (p GradientMaskingParams) counts(n int) []int {
	counts := make([]int, p.masks())
	first := 1 / float64(p.Steps)
	last := 1.0
	if p.Variant == january2024Masking {
		last = 1 - first
	}
	for k := range counts {
		if p.Variant == paperMasking {
			counts[k] = (k+1)*n/(p.Steps+1) - k*n/(p.Steps+1)
			continue
		}
		// The code's share is a number in single precision, and so is its product.
		counts[k] = int(linspace32(float32(first), float32(last), p.Steps, k) * float32(n))
	}
	return counts
}

// linspace32 returns number k of n numbers from first to last as PyTorch computes them: from the nearer end.
func linspace32(first, last float32, n, k int) float32 {
	step := (last - first) / float32(n-1)
	if k < n/2 {
		return first + float32(step*float32(k))
	}
	return last - float32(step*float32(n-1-k))
}

func runGradientMasking(ctx context.Context, p GradientMaskingParams, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	// A row is one sequence of one image.
	derivative := lower.Question{Rules: relevance.Derivative()}
	g, err := n.Gradient(ctx, e.Slot, derivative, n.Fit(2*e.Len(), e.Batch))
	if err != nil {
		return err
	}
	counts := p.counts(n.Size())
	var rows []*masking
	for i := range e.Len() {
		image := make([]float32, n.Size())
		t, err := stages.DecodeTensor(e.In("images", i))
		if err == nil {
			err = n.Normalise(t, image)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		b := e.In("targets", i)
		if b == nil {
			return fmt.Errorf("item %q: port targets has no item for it", e.Calls[i].ID)
		}
		target, err := n.Target(b)
		if err != nil {
			return fmt.Errorf("item %q: port targets: %w", e.Calls[i].ID, err)
		}
		most := newMasking(image, target, true)
		least := newMasking(slices.Clone(image), target, false)
		rows = append(rows, most, least)
		if len(rows) < g.Batch-1 && i < e.Len()-1 {
			continue
		}
		if err := runMaskings(ctx, n, g, rows, counts, p.Variant == paperMasking); err != nil {
			return err
		}
		for k := 0; k < len(rows); k += 2 {
			putMaskings(e, i+1-len(rows)/2+k/2, n, rows[k], rows[k+1], p.Variant != paperMasking)
		}
		e.Done(len(rows) / 2)
		rows = rows[:0]
	}
	return nil
}

// A masking is an image that is masked step by step.
type masking struct {
	image   []float32 // as masked so far
	target  program.Target
	largest bool
	removed []uint8 // by step, from 1; 0 for never
	outputs []float64
	impact  []float64 // summed over states
}

func newMasking(image []float32, target program.Target, largest bool) *masking {
	return &masking{image: image, target: target, largest: largest, removed: make([]uint8, len(image)),
		impact: make([]float64, len(image))}
}

// runMaskings runs the steps of some sequences, a batch at a time. Their first states are equal in pairs, and
// the pair shares its pass. In the paper's reading a step masks elements that aren't masked yet, and impacts
// add up as they are.
func runMaskings(ctx context.Context, n *program.Net, g program.Gradient, rows []*masking, counts []int,
	paper bool) error {
	impact := make([]float64, n.Size())
	for step := range len(counts) + 1 {
		stride := 1
		if step == 0 {
			stride = 2
		}
		for from := 0; from < len(rows); from += stride * g.Batch {
			to := min(from+stride*g.Batch, len(rows))
			for k := from; k < to; k += stride {
				g.Explain((k-from)/stride, rows[k].target)
				copy(g.Image((k-from)/stride), rows[k].image)
			}
			if err := g.Run(ctx); err != nil {
				return err
			}
			for k := from; k < to; k++ {
				row, r := (k-from)/stride, rows[k]
				r.outputs = append(r.outputs, n.Logit(g.Row(row), r.target))
				r.record(g.Gradient(row), impact, !paper)
				if step < len(counts) {
					r.remove(impact, step+1, counts[step], paper)
				}
			}
		}
	}
	return nil
}

// record writes the impact of each element and adds it, or its share, to the sum.
func (m *masking) record(gradient []float32, impact []float64, share bool) {
	for k, v := range gradient {
		impact[k] = math.Abs(float64(v * m.image[k]))
	}
	scale := 1.0
	if share {
		scale = total(impact) + tiny
	}
	for k := range impact {
		m.impact[k] += impact[k] / scale
	}
}

// tiny keeps the official code's quotients of zeros from being undefined.
const tiny = 1e-9

// remove masks the elements of the largest or smallest impact at a step, chosen among those
// not masked yet or among all. Ties go to masked elements, and then to the first.
func (m *masking) remove(impact []float64, step, count int, ofRest bool) {
	// Impacts aren't negative, so that their bits are in their order.
	key := func(k int) uint64 {
		b := math.Float64bits(impact[k])
		if m.largest {
			b = ^b
		}
		return b
	}
	keys := make([]uint64, 0, len(impact))
	for k := range impact {
		if !ofRest || m.removed[k] == 0 {
			keys = append(keys, key(k))
		}
	}
	if count = min(count, len(keys)); count == 0 {
		return
	}
	last := smallest(keys, count-1)
	for k, removed := range m.removed {
		if b := key(k); b < last || b == last && removed != 0 {
			if removed == 0 {
				m.removed[k], m.image[k] = uint8(step), 0
				count--
			} else if !ofRest {
				count--
			}
		}
	}
	for k := 0; k < len(impact) && count > 0; k++ {
		if m.removed[k] == 0 && key(k) == last {
			m.removed[k], m.image[k] = uint8(step), 0
			count--
		}
	}
}

// smallest returns the value that would be at index k if v were sorted. It reorders v.
func smallest(v []uint64, k int) uint64 {
	for low, high := 0, len(v)-1; low < high; {
		pivot := v[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return v[k]
		}
	}
	return v[k]
}

// putMaskings puts the sequences of item i, and their impacts or the shares of these.
func putMaskings(e *stages.Env, i int, n *program.Net, most, least *masking, share bool) {
	shape := []int{n.Channels, n.Height, n.Width}
	e.Put("morf", i, stages.NewTensor(most.removed, shape...).Encode())
	e.Put("lerf", i, stages.NewTensor(least.removed, shape...).Encode())
	e.Put("outputs", i, stages.NewTensor(slices.Concat(most.outputs, least.outputs), 2,
		len(most.outputs)).Encode())
	impact, high, low := make([]float32, n.Size()), make([]float32, n.Size()), make([]float32, n.Size())
	scales := [2]float64{1, 1}
	if share {
		scales = [2]float64{total(most.impact) + tiny, total(least.impact) + tiny}
	}
	for k := range impact {
		m, l := most.impact[k]/scales[0], least.impact[k]/scales[1]
		impact[k], high[k], low[k] = float32(l-m), float32(m), float32(l)
	}
	e.Put("impact", i, stages.NewTensor(impact, shape...).Encode())
	e.Put("impact_morf", i, stages.NewTensor(high, shape...).Encode())
	e.Put("impact_lerf", i, stages.NewTensor(low, shape...).Encode())
}

func total(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}
