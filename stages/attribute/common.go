package attribute

import (
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/target"
)

// Common are the parameters of all attribution methods, so that an experiment can set them for a whole axis
// of methods.
type Common struct {
	stages.Precise
	Target string           `yaml:"target" doc:"the explained class: predicted (or that on the port targets), predicted:2 for the second best, label, a class's number or name, or a difference such as 7-3, tench - goldfish, predicted-predicted:2 or, of images that are all classified wrongly, predicted-label"`
	Layer  Layers           `yaml:"layer" doc:"the layer of the map: input, middle, final, or the name of any value of the model's graph; agi, methods of attention and baselines support input alone; of class activation maps also a list of layers, [middle, final], whose maps are joined"`
	Output string           `yaml:"output" doc:"the explained output" choices:"logit|probability"`
	Reduce metric.Reduction `yaml:"reduce" doc:"how channels become one: their sum, its magnitude, the sum of magnitudes, or not at all, at an inner layer with size: layer" choices:"sum|abs-sum|sum-abs|none"`
}

// common returns the defaults of Common.
func common() Common {
	return Common{Target: "predicted", Layer: "input", Output: "logit", Reduce: metric.Sum}
}

// Validate refuses a target that is malformed, and inner layers.
func (c Common) Validate() error {
	if c.Layer != "input" {
		return stages.BadField("layer", "layer %q: this method makes its map at the input", c.Layer)
	}
	return program.CheckTarget(c.Target)
}

// explains returns the expression of the explained class.
func (c Common) explains() string { return c.Target }

// unit returns the unit of the explained output.
func (c Common) unit() string { return c.Output }

// check refuses a target that needs a port which isn't wired, or that conflicts with one that is.
func (c Common) check(wired func(string) bool) error {
	if target.Is(c.Target) {
		return c.checkExpression()
	}
	e, err := program.ParseExpression(c.Target)
	switch {
	case err != nil:
		return stages.BadField("target", "target: %w", err)
	case e.Labelled() && !wired("labels"):
		return stages.BadField("target", "target is %s, but the port labels isn't wired", c.Target)
	case e.Predicts() && c.Target != program.PredictedClass && wired("targets"):
		return stages.BadField("target",
			"target is %s, but the port targets is wired and names the explained class", c.Target)
	}
	return nil
}

// checkExpression refuses the probability of an expression.
func (c Common) checkExpression() error {
	if c.Output == "probability" {
		return stages.BadField("output", "output: probability is of a class, and target is the expression "+
			"%s: softmax(…) and sigmoid(…) are probabilities in it", c.Target)
	}
	return nil
}

// target returns the class to explain for item i. Targets that depend on predictions come from the port
// targets: model/predict has the same parameter target and resolves the whole expression.
func (c Common) target(e *stages.Env, i int, n *program.Net) (program.Target, error) {
	if n.Head != nil {
		if c.Target != program.PredictedClass && c.Target != n.Head.Text {
			return program.Target{}, stages.BadField("target",
				"target is %s, but the model's answer is the expression %s", c.Target, n.Head.Text)
		}
		return c.onPort(e, i, n)
	}
	x, err := program.ParseExpression(c.Target)
	if err == nil {
		x, err = x.Resolve(e.Facts("model")["labels"], e.Facts("labels")["labels"])
	}
	if err == nil {
		err = x.Fits(n.Classes)
	}
	if err != nil {
		return program.Target{}, stages.BadField("target", "target: %w", err)
	}
	fail := func(err error) (program.Target, error) {
		return program.Target{}, fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
	}
	if !x.Predicts() {
		label := e.In("labels", i)
		if x.Labelled() && label == nil {
			return fail(fmt.Errorf("port labels has no class to explain"))
		}
		t, err := x.Target(nil, label, n.Classes)
		if err != nil {
			return fail(err)
		}
		return t, nil
	}
	return c.onPort(e, i, n)
}

// onPort returns what the port targets has for item i.
func (c Common) onPort(e *stages.Env, i int, n *program.Net) (program.Target, error) {
	b := e.In("targets", i)
	if b == nil {
		return program.Target{}, fmt.Errorf("item %q: port targets has no class to explain", e.Calls[i].ID)
	}
	t, err := n.Target(b)
	if err != nil {
		return program.Target{}, fmt.Errorf("item %q: port targets: %w", e.Calls[i].ID, err)
	}
	return t, nil
}

// The quantities of maps that methods declare as "map": a gradient is per unit of the normalised image, a
// contribution is a part of the explained output.
const (
	gradientMap     = "gradient"
	contributionMap = "contribution"
)

// declares returns what a method declares whose values are a quantity of the explained output, in comparison
// with a reference unless that is "". Pixels of an inner layer's map aren't the image's, and magnitudes have
// lost their signs: such maps are neither.
func (c Common) declares(quantity, reference string) stages.Declared {
	if c.Layer != "input" || c.Reduce != metric.Sum && c.Reduce != metric.None {
		return nil
	}
	d := stages.Declared{"map": quantity, "output": c.Output}
	if reference != "" {
		d["reference"] = reference
	}
	return d
}

// explained returns the explained class as model/predict has it, "" where the classes on the port targets are
// explained.
func (c Common) explained(in map[string]stages.Declared) string {
	if _, wired := in["targets"]; wired && c.Target == program.PredictedClass {
		return ""
	}
	return c.Target
}

// withTarget adds the explained class to what a method declares.
func withTarget[P checked](d *stages.Def[P]) {
	declares := d.Declares
	d.Declares = func(p P, in map[string]stages.Declared) stages.Declared {
		all := stages.Declared{}
		if declares != nil {
			for name, value := range declares(p, in) {
				all[name] = value
			}
		}
		if target := p.explained(in); target != "" {
			all["target"] = target
		}
		return all
	}
}

// response returns the explained output, given a row of the model's outputs.
func (c Common) response(n *program.Net, row []float32, t program.Target) float64 {
	if c.Output == "probability" {
		return n.Probability(row, t)
	}
	return n.Logit(row, t)
}

// putMap puts the map of item i and warns of undefined values, which methods have that divide by an output of
// 0.
//
// The map of a text loses the columns of its padding.
func putMap(e *stages.Env, i int, m stages.Tensor) {
	if t, err := program.TokensOf(e, i); err == nil {
		m = columns(m, t.Len())
	}
	if undefined := m.Undefined(); undefined > 0 {
		e.WarnItem(i, "%d of %d values of its map are not numbers", undefined, m.Len())
	}
	e.Put("maps", i, m.Encode())
	e.Done(1)
}

// reduced returns the map with channels × height × width values.
func (c Common) reduced(values []float64, channels, height, width int) stages.Tensor {
	if c.Reduce == metric.None {
		return stages.NewTensor(singles(values), channels, height, width)
	}
	return stages.NewTensor(singles(c.flat(values, height*width)), height, width)
}

// flat makes one value of the channels of each of n places; reduce: none adds them up here.
func (c Common) flat(values []float64, n int) []float64 { return c.Reduce.Of(values, n) }

func singles(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// image writes the normalised image of item i into dst.
func image(e *stages.Env, i int, n *program.Net, dst []float32) error {
	return imageOn("images", e, i, n, dst)
}

// imageOn does the same for an image on another port.
func imageOn(port string, e *stages.Env, i int, n *program.Net, dst []float32) error {
	t, err := stages.DecodeTensor(e.In(port, i))
	if err == nil {
		err = n.Normalise(t, dst)
	}
	if err != nil && port != "images" {
		err = fmt.Errorf("port %s: %w", port, err)
	}
	if err != nil {
		return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
	}
	return nil
}
