// Package perturb has the stages that replace the pixels of an image step by step, in the order of a map's
// ranks, and record the model's response. Each stage (insertion.go, deletion.go, ablation.go) is a preset of
// one implementation (perturb.go); substrate.go makes the replacing pixels.
package perturb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// Params are the parameters common to all perturbation stages.
type Params struct {
	Substrate string  `yaml:"substrate" doc:"what replaces the image's pixels: the blurred image, zero after normalisation, black pixels, the mean over channels of the model's means as a normalised value, or uniform noise in [0,1) as normalised values" choices:"blur|zero|black|mean|random"`
	Kernel    int     `yaml:"kernel" doc:"blur: side of the kernel in pixels, odd" min:"1" max:"1023"`
	Sigma     float64 `yaml:"sigma" doc:"blur: standard deviation of the kernel in pixels" min:"0.01" max:"1000"`
	Step      int     `yaml:"step" doc:"pixels replaced per step; 0: see steps" min:"0"`
	Steps     int     `yaml:"steps" doc:"number of steps of equal size, unless step is given; 0: as many pixels per step as the image's longer side has" min:"0"`
	Values    string  `yaml:"values" doc:"the order of pixels: by the magnitude or the signed value of the sum over channels" choices:"magnitude|signed"`
	Ties      string  `yaml:"ties" doc:"the order of pixels of equal value: row by row, which favours the top left and leaves a constant map without an order, or random, drawn for each map" choices:"index|random"`
}

func defaults(substrate string) Params {
	return Params{Substrate: substrate, Kernel: 11, Sigma: 11, Values: "magnitude", Ties: "index"}
}

// Validate rejects kernels without a centre.
func (p Params) Validate() error {
	if p.Kernel%2 == 0 {
		return stages.BadField("kernel", "kernel is %d: its side must be odd to have a centre", p.Kernel)
	}
	return nil
}

// A direction defines how a curve is traced.
type direction struct {
	name       string           // the fact "order"
	better     stages.Direction // which area under the curve is better
	insert     bool             // from the substrate to the image rather than the reverse
	leastFirst bool             // the least relevant pixels first
}

var (
	insertion = direction{"insertion", stages.Higher, true, false}
	deletion  = direction{"deletion", stages.Lower, false, false}
	morf      = direction{"morf", stages.Lower, false, false}
	lerf      = direction{"lerf", stages.Higher, false, true}
)

func inputs() []stages.Port {
	return []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the classifier"},
		{Name: "images", Type: stages.Images, Doc: "the images, of the model's size"},
		{Name: "maps", Type: stages.Ranks, Accepts: &stages.Maps, Via: "maps/rank",
			Doc: "attribution maps"},
		{Name: "targets", Type: stages.Targets,
			Doc:      "the class whose response is recorded; default: the prediction for the original image",
			Optional: true, Else: "model/predict"},
		{Name: "labels", Type: stages.Labels,
			Doc: "the class for correctness; default: the target", Optional: true},
	}
}

func outputs() []stages.Port {
	return []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "probability, logit and correctness of the class at every step"}}
}

// points returns the number of replaced pixels at each point of a curve over n pixels; longest is the image's
// longer side.
func (p Params) points(n, longest int) []int {
	var out []int
	if p.byShare() {
		for k := range p.Steps + 1 {
			out = append(out, int(math.RoundToEven(float64(n)*float64(k)/float64(p.Steps))))
		}
		return out
	}
	step := p.step(longest)
	for k := 0; k < n; k += step {
		out = append(out, k)
	}
	return append(out, n)
}

// byShare reports whether steps are equal shares of the pixels.
func (p Params) byShare() bool { return p.Step == 0 && p.Steps > 0 }

func (p Params) step(longest int) int {
	if p.Step > 0 {
		return p.Step
	}
	return longest
}

func (p Params) facts(d direction, in map[string]stages.Facts) (map[string]stages.Facts, error) {
	height, errH := strconv.Atoi(in["model"]["height"])
	width, errW := strconv.Atoi(in["model"]["width"])
	if errH != nil || errW != nil {
		return nil, fmt.Errorf("the model's facts have no height or width")
	}
	f := stages.Facts{
		"responses": "probability,logit,correct",
		"order":     d.name,
		"direction": string(d.better),
	}
	// Steps of unequal size have no common number of pixels.
	if n := height * width; !p.byShare() {
		f["step_pixels"] = strconv.Itoa(p.step(max(height, width)))
	} else if n%p.Steps == 0 {
		f["step_pixels"] = strconv.Itoa(n / p.Steps)
	}
	return map[string]stages.Facts{"curves": f}, nil
}

func (p Params) run(ctx context.Context, d direction, e *stages.Env) error {
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	pixels := n.Height * n.Width
	points := p.points(pixels, max(n.Height, n.Width))
	c, err := n.Curve(ctx, e.Slot, n.Fit(len(points), e.Batch))
	if err != nil {
		return err
	}
	s := newSubstrate(p, n)
	image := make([]float32, n.Size())
	other := make([]float32, n.Size())
	for i := range e.Len() {
		t, err := stages.DecodeTensor(e.In("images", i))
		if err == nil {
			err = n.Normalise(t, image)
		}
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		ranks, err := ranksOf(e.In("maps", i), n.Height, n.Width, d.leastFirst)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		curve := undefinedCurve(3 * len(points))
		if ranks != nil {
			s.fill(e, i, image, other)
			if d.insert {
				c.Set(other, image, ranks)
			} else {
				c.Set(image, other, ranks)
			}
			if curve, err = responses(ctx, e, i, n, c, points); err != nil {
				return err
			}
		}
		e.Put("curves", i, stages.NewTensor(curve, 3, len(points)).Encode())
		e.Done(1)
	}
	return nil
}

// responses runs the steps of item i and returns its three responses, concatenated.
func responses(ctx context.Context, e *stages.Env, i int, n *program.Net, c program.Curve,
	points []int) ([]float64, error) {
	b := e.In("targets", i)
	if b == nil {
		return nil, fmt.Errorf("item %q: port targets has no item for it", e.Calls[i].ID)
	}
	target, err := n.Target(b)
	if err != nil {
		return nil, fmt.Errorf("item %q: port targets: %w", e.Calls[i].ID, err)
	}
	correct := target.Class
	if n.Independent && n.Classes == 1 {
		correct = 1 // the label that the single output stands for
	}
	if b := e.In("labels", i); b != nil {
		// The label may be a class that the model doesn't have: then no answer is correct.
		label, err := stages.ScalarOf(b)
		if err != nil {
			return nil, fmt.Errorf("item %q: port labels: %w", e.Calls[i].ID, err)
		}
		correct = int(label)
		if correct < 0 || correct >= max(n.Classes, 2) {
			e.WarnItem(i, "its label is %d, but the model has %d classes: no prediction is correct",
				correct, n.Classes)
		}
	}
	curve := make([]float64, 3*len(points))
	for from := 0; from < len(points); from += c.Batch {
		to := min(from+c.Batch, len(points))
		if err := c.Run(ctx, points[from:to]); err != nil {
			return nil, err
		}
		for k := from; k < to; k++ {
			row := c.Row(k - from)
			curve[k] = n.Probability(row, target)
			curve[len(points)+k] = n.Logit(row, target)
			if n.Label(row) == correct {
				curve[2*len(points)+k] = 1
			}
		}
	}
	return curve, nil
}

// undefinedCurve returns n NaNs, the curve of a map without an order.
func undefinedCurve(n int) []float64 {
	curve := make([]float64, n)
	for k := range curve {
		curve[k] = math.NaN()
	}
	return curve
}

// ranksOf decodes a rank map, reversed if the least relevant pixel comes first. It returns nil if the ranked
// map has no order.
func ranksOf(payload []byte, height, width int, leastFirst bool) ([]float32, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if t.DType == stages.U32 && slices.Equal(t.Shape, []int{0, 0}) {
		return nil, nil
	}
	if t.DType != stages.U32 || len(t.Shape) != 2 || t.Shape[0] != height || t.Shape[1] != width {
		return nil, fmt.Errorf("a map of %v pixels doesn't match the model's %d×%d", t.Shape, height, width)
	}
	ranks := t.Float32s()
	if leastFirst {
		for i := range ranks {
			ranks[i] = float32(height*width-1) - ranks[i]
		}
	}
	return ranks, nil
}
