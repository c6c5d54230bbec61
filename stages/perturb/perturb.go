// Package perturb holds the stages that replace the pixels of an image step by step, in the order of a map,
// and watch the model's answer. They are presets of one implementation.
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

// Params are the parameters that all perturbation stages have.
type Params struct {
	Substrate string  `yaml:"substrate" doc:"what stands where the image's pixels don't: the image blurred, zero after normalisation, black pixels, the mean over channels of the model's means as a normalised value, or uniform noise in [0,1) as normalised values" choices:"blur|zero|black|mean|random"`
	Kernel    int     `yaml:"kernel" doc:"blur: side of the kernel in pixels, odd" min:"1" max:"1023"`
	Sigma     float64 `yaml:"sigma" doc:"blur: standard deviation of the kernel in pixels" min:"0.01" max:"1000"`
	Step      int     `yaml:"step" doc:"pixels replaced a step; 0 leaves it to steps" min:"0"`
	Steps     int     `yaml:"steps" doc:"number of steps of equal size, unless step is given; 0 replaces as many pixels a step as the longer side of the image has" min:"0"`
	Values    string  `yaml:"values" doc:"what pixels are ordered by: magnitude or signed value of the channels' sum" choices:"magnitude|signed"`
	Ties      string  `yaml:"ties" doc:"how pixels of equal value are ordered: row by row, which favours the top left and gives a constant map no order, or at random, drawn for each map" choices:"index|random"`
}

func defaults(substrate string) Params {
	return Params{Substrate: substrate, Kernel: 11, Sigma: 11, Values: "magnitude", Ties: "index"}
}

// Validate refuses kernels without a centre.
func (p Params) Validate() error {
	if p.Kernel%2 == 0 {
		return stages.BadField("kernel", "kernel is %d, and only odd sides have a centre", p.Kernel)
	}
	return nil
}

// A direction is how a curve is drawn.
type direction struct {
	name   string           // the fact "order"
	better stages.Direction // what is better of the area under it
	insert bool             // from the substrate to the image, rather than back
	least  bool             // least relevant pixels first
}

var (
	insertion = direction{"insertion", stages.Higher, true, false}
	deletion  = direction{"deletion", stages.Lower, false, false}
	morf      = direction{"morf", stages.Lower, false, false}
	lerf      = direction{"lerf", stages.Higher, false, true}
)

func inputs() []stages.Port {
	return []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the model that answers"},
		{Name: "images", Type: stages.Images, Doc: "the images, of the model's size"},
		{Name: "maps", Type: stages.Ranks, Accepts: &stages.Maps, Via: "maps/rank",
			Doc: "maps that say which pixels are relevant"},
		{Name: "targets", Type: stages.Targets,
			Doc:      "the class whose response is drawn; the prediction for the original image if unwired",
			Optional: true, Else: "model/predict"},
		{Name: "labels", Type: stages.Labels,
			Doc: "the right class, which correctness is about; the target if unwired", Optional: true},
	}
}

func outputs() []stages.Port {
	return []stages.Port{{Name: "curves", Type: stages.Curves,
		Doc: "probability, logit and correctness of the class after every step"}}
}

// points returns how many pixels are replaced at each point of a curve over n pixels; longest is the image's
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
		return nil, fmt.Errorf("the model's facts don't say its size")
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
		ranks, err := ranksOf(e.In("maps", i), n.Height, n.Width, d.least)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		curve := undefined(3 * len(points))
		if ranks != nil {
			s.fill(e, i, image, other)
			if d.insert {
				c.Set(other, image, ranks)
			} else {
				c.Set(image, other, ranks)
			}
			if curve, err = respond(ctx, e, i, n, c, points); err != nil {
				return err
			}
		}
		e.Put("curves", i, stages.NewTensor(curve, 3, len(points)).Encode())
		e.Done(1)
	}
	return nil
}

// respond runs the steps of item i and returns the three responses, one after the other.
func respond(ctx context.Context, e *stages.Env, i int, n *program.Net, c program.Curve,
	points []int) ([]float64, error) {
	b := e.In("targets", i)
	if b == nil {
		return nil, fmt.Errorf("item %q: nothing on port targets says which class to watch", e.Calls[i].ID)
	}
	target, err := program.TargetOf(b, n.Classes)
	if err != nil {
		return nil, fmt.Errorf("item %q: port targets: %w", e.Calls[i].ID, err)
	}
	right := target.Class
	if n.Independent && n.Classes == 1 {
		right = 1 // the label of the single class
	}
	if b := e.In("labels", i); b != nil {
		// A label may be of a class that the model doesn't know: never right.
		label, err := stages.ScalarOf(b)
		if err != nil {
			return nil, fmt.Errorf("item %q: port labels: %w", e.Calls[i].ID, err)
		}
		right = int(label)
		if right < 0 || right >= max(n.Classes, 2) {
			e.WarnItem(i, "its label is %d, and the model has %d classes, so that no answer is correct",
				right, n.Classes)
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
			if n.Label(row) == right {
				curve[2*len(points)+k] = 1
			}
		}
	}
	return curve, nil
}

// undefined returns the n numbers of a curve that no order leads along.
func undefined(n int) []float64 {
	curve := make([]float64, n)
	for k := range curve {
		curve[k] = math.NaN()
	}
	return curve
}

// ranksOf reads a rank map, turned round if the least relevant pixel is to come first. It is nil where the
// map that was to be ranked has no order.
func ranksOf(payload []byte, height, width int, least bool) ([]float32, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	if t.DType == stages.U32 && slices.Equal(t.Shape, []int{0, 0}) {
		return nil, nil
	}
	if t.DType != stages.U32 || len(t.Shape) != 2 || t.Shape[0] != height || t.Shape[1] != width {
		return nil, fmt.Errorf("a map of %v pixels doesn't fit the model's %d×%d", t.Shape, height, width)
	}
	ranks := t.Float32s()
	if least {
		for i := range ranks {
			ranks[i] = float32(height*width-1) - ranks[i]
		}
	}
	return ranks, nil
}
