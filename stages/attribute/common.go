package attribute

import (
	"fmt"
	"math"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// Common are the parameters that all attribution methods have, so that an
// experiment can set them for a whole axis of methods.
type Common struct {
	Target string `yaml:"target" doc:"the explained class: predicted (or what the port targets says), label, or a class's number"`
	Layer  string `yaml:"layer" doc:"where the map is made" choices:"input"`
	Output string `yaml:"output" doc:"the explained number" choices:"logit|probability"`
	Reduce string `yaml:"reduce" doc:"how channels become one: their sum, its magnitude, the sum of magnitudes, or not at all" choices:"sum|abs-sum|sum-abs|none"`
}

// common returns the defaults of Common.
func common() Common {
	return Common{Target: "predicted", Layer: "input", Output: "logit", Reduce: "sum"}
}

// Validate refuses a target that is no class.
func (c Common) Validate() error {
	if c.Target == "predicted" || c.Target == "label" {
		return nil
	}
	if n, err := strconv.Atoi(c.Target); err != nil || n < 0 {
		return stages.BadField("target", "target %q is neither predicted nor label nor the number of a class", c.Target)
	}
	return nil
}

// check refuses a target that the wired ports can't tell.
func (c Common) check(wired func(string) bool) error {
	if c.Target == "label" && !wired("labels") {
		return stages.BadField("target", "target is label, and nothing is wired to labels")
	}
	return nil
}

// inputs returns the ports that attribution methods of a model have.
func inputs() []stages.Port {
	return []stages.Port{
		{Name: "model", Type: stages.Model, Doc: "the explained model"},
		{Name: "images", Type: stages.Images, Doc: "the explained images, of the model's size"},
		{Name: "targets", Type: stages.Targets, Doc: "the explained classes; the prediction for the original image if unwired", Optional: true, Else: "model/predict"},
		{Name: "labels", Type: stages.Labels, Doc: "explained if target is label", Optional: true},
	}
}

// outputs returns the port of the maps.
func outputs() []stages.Port {
	return []stages.Port{{Name: "maps", Type: stages.Maps, Doc: "one map an image, of the image's size"}}
}

// target returns the class to explain for item i.
func (c Common) target(e *stages.Env, i int, n *program.Net) (program.Target, error) {
	port := "targets"
	switch c.Target {
	case "predicted":
	case "label":
		port = "labels"
	default:
		class, err := strconv.Atoi(c.Target)
		if err == nil && class >= n.Classes {
			err = fmt.Errorf("target: class %d is not one of the model's %d", class, n.Classes)
		}
		return program.Target{Class: class, Minus: -1}, err
	}
	b := e.In(port, i)
	if b == nil {
		return program.Target{}, fmt.Errorf("item %q: nothing on port %s says which class to explain", e.Calls[i].ID, port)
	}
	t, err := program.TargetOf(b, n.Classes)
	if err != nil {
		err = fmt.Errorf("item %q: port %s: %w", e.Calls[i].ID, port, err)
	}
	return t, err
}

// response returns the explained number for a row of the model's answer.
func (c Common) response(n *program.Net, row []float32, t program.Target) float64 {
	if c.Output == "probability" {
		return n.Probability(row, t)
	}
	return n.Logit(row, t)
}

// reduced returns the payload of a map with channels × height × width values.
func (c Common) reduced(values []float64, channels, height, width int) []byte {
	n := height * width
	if c.Reduce == "none" {
		return stages.NewTensor(singles(values), channels, height, width).Encode()
	}
	out := make([]float64, n)
	for i, v := range values {
		if c.Reduce == "sum-abs" {
			v = math.Abs(v)
		}
		out[i%n] += v
	}
	if c.Reduce == "abs-sum" {
		for i, v := range out {
			out[i] = math.Abs(v)
		}
	}
	return stages.NewTensor(singles(out), height, width).Encode()
}

func singles(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// image writes the normalised image of item i into dst.
func image(e *stages.Env, i int, n *program.Net, dst []float32) error {
	t, err := stages.DecodeTensor(e.In("images", i))
	if err == nil {
		err = n.Normalise(t, dst)
	}
	if err != nil {
		return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
	}
	return nil
}
