package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Tapped are the parameters of methods that may look at an inner layer: their map is
// made there, and enlarged to the image's size.
type Tapped struct {
	Common
	Size string `yaml:"size" doc:"the size of an inner layer's map: the image's, to which it is enlarged, or the layer's own" choices:"image|layer"`
}

func tapped() Tapped { return Tapped{common(), "image"} }

// Validate refuses what [Common] refuses of others, and maps of an inner layer's channels
// that are as large as the image.
func (p Tapped) Validate() error {
	if p.Layer == "" {
		return stages.BadField("layer",
			"layer is neither input nor middle nor final nor the name of a value of the model's graph")
	}
	if p.Layer != "input" && p.Reduce == "none" && p.Size != "layer" {
		return stages.BadField("reduce", "reduce none keeps the channels of layer %s, and hundreds of them "+
			"would each be enlarged to the image's size; size: layer keeps theirs", p.Layer)
	}
	inner := p.Common
	inner.Layer = "input"
	return inner.Validate()
}

// question returns what the model is asked for, going backwards by these rules.
func (p Tapped) question(ctx context.Context, e *stages.Env, n *program.Net,
	rules relevance.Policy) (program.Question, error) {
	q := program.Question{Rules: rules, Probability: p.Output == "probability"}
	if p.Layer == "input" {
		return q, nil
	}
	var err error
	q.Layer, err = p.layer(ctx, e, n)
	return q, err
}

// layer returns the name of the layer's value, and warns of a final one that isn't.
func (p Tapped) layer(ctx context.Context, e *stages.Env, n *program.Net) (string, error) {
	name, err := n.Layer(ctx, e.Slot, p.Layer)
	if err != nil || p.Layer != "final" {
		return name, err
	}
	g, err := n.Graph(ctx, e.Slot, n.Fit(2, 2))
	if err != nil {
		return "", err
	}
	if why := p.Remark(g); why != "" {
		e.Warn("%s", why)
	}
	return name, nil
}

// Remark tells of models whose final layer is followed by most of their convolutions.
func (p Tapped) Remark(g *onnx.Graph) string {
	if p.Layer != "final" {
		return ""
	}
	_, final := relevance.Layers(g)
	if behind, all := relevance.ConvsAfter(g, final); final != "" && 2*behind > all {
		return fmt.Sprintf("layer final is %q, and %d of the model's %d convolutions come after it: no later "+
			"value has places and is on all paths; name a layer to choose another", final, behind, all)
	}
	return ""
}

// A backwardPass is one backward pass of a method: the question for the model, and the class that it is of.
type backwardPass struct {
	Common
	question program.Question
	passStart
}

// A passStart says where a backward pass starts and how its result counts; the zero value starts at the target.
type passStart struct {
	name   string                                          // the same for equal counts
	counts func(classes []float32, t program.Target) error // writes how much each class counts for a target
	factor func(result []float32) float64                  // of the result in a sum of passes; nil for 1
}

// from returns the pass from each of some starts.
func (b backwardPass) from(starts []passStart) []backwardPass {
	passes := slices.Repeat([]backwardPass{b}, len(starts))
	for k, s := range starts {
		passes[k].passStart, passes[k].question.Counts = s, s.name
	}
	return passes
}

// A passResult is the result of a backward pass for one image. The next one overwrites its slices.
type passResult struct {
	program.Result
	response float64 // the explained number
	factor   func(result []float32) float64
}

// summed returns the sum of results, each times its factor.
func summed(results []passResult) []float64 {
	values := make([]float64, len(results[0].Gradient))
	for _, r := range results {
		factor := 1.0
		if r.factor != nil {
			factor = r.factor(r.Gradient)
		}
		for i, v := range r.Gradient {
			values[i] += float64(factor * float64(v))
		}
	}
	return values
}

// backwardParams are the parameters of a method whose map is made of the results of backward passes. Its passes are
// apart from what is made of them, so that several methods can share a forward pass.
type backwardParams interface {
	checked
	backwardPasses(ctx context.Context, e *stages.Env, n *program.Net) ([]backwardPass, error)
	// combine puts the map of item i, given the result of each of the passes.
	combine(e *stages.Env, i int, n *program.Net, results []passResult) error
}

// backwardPasses returns the pass of a method that takes the derivative.
func (p Tapped) backwardPasses(ctx context.Context, e *stages.Env, n *program.Net) ([]backwardPass, error) {
	return p.onePass(ctx, e, n, relevance.Derivative())
}

// onePass returns the pass of a method that follows some rules, from the explained number.
func (p Tapped) onePass(ctx context.Context, e *stages.Env, n *program.Net,
	rules relevance.Policy) ([]backwardPass, error) {
	q, err := p.question(ctx, e, n, rules)
	return []backwardPass{{Common: p.Common, question: q}}, err
}

// put hands over the map of item i, given values of the layer's shape.
func (p Tapped) put(e *stages.Env, i int, n *program.Net, values []float64, shape []int) error {
	if p.Layer == "input" {
		putMap(e, i, p.reduced(values, n.Channels, n.Height, n.Width))
		return nil
	}
	planes, err := p.planesOf(values, shape)
	if err != nil {
		return err
	}
	if p.Reduce == "none" { // at the layer's size
		putMap(e, i, stages.NewTensor(singles(planes.values), planes.channels, planes.height, planes.width))
		return nil
	}
	p.putPlane(e, i, n, p.flat(planes.values, planes.pixels()), planes, "bilinear")
	return nil
}

// putPlane hands over the map of item i, given one value for each place of a
// layer.
func (p Tapped) putPlane(e *stages.Env, i int, n *program.Net, plane []float64, at planes, how string) {
	height, width := n.Height, n.Width
	if p.Size == "layer" {
		height, width = at.height, at.width
	}
	shape := []int{height, width}
	if p.Reduce == "none" {
		shape = []int{1, height, width}
	}
	large := resized(plane, at.height, at.width, height, width, how)
	putMap(e, i, stages.NewTensor(singles(large), shape...))
}

// planes are the values of a layer as channels of places on a grid that covers
// the image.
type planes struct {
	values                  []float64
	channels, height, width int
}

func (p planes) pixels() int { return p.height * p.width }

// planesOf reads values of the layer.
func (p Tapped) planesOf(values []float64, shape []int) (planes, error) {
	at, err := planesOf(values, shape)
	if err != nil {
		return at, stages.BadField("layer", "layer %s: %w; those of feature maps and of tokens have, such "+
			"as layer final where the model has one", p.Layer, err)
	}
	return at, nil
}

// planesOf reads values of a layer: feature maps [K,h,w], or tokens [T,K] of a
// square grid of patches, with or without other tokens before them, which have no
// place and are left out.
func planesOf(values []float64, shape []int) (planes, error) {
	switch len(shape) {
	case 3:
		return planes{values, shape[0], shape[1], shape[2]}, nil
	case 2:
		tokens, channels := shape[0], shape[1]
		if side, others := relevance.TokenGrid(tokens); side > 0 {
			p := planes{make([]float64, 0, side*side*channels), channels, side, side}
			for c := range channels {
				for t := others; t < tokens; t++ {
					p.values = append(p.values, values[t*channels+c])
				}
			}
			return p, nil
		}
	}
	return planes{}, fmt.Errorf("values of shape %v for an image have no places in the image",
		slices.Clone(shape))
}
