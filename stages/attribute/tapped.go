package attribute

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Tapped are the parameters of methods that can make their map at an inner layer. Such a map is enlarged to
// the image's size, or keeps the layer's.
type Tapped struct {
	Common
	Size string `yaml:"size" doc:"the size of an inner layer's map: the image's, to which it is enlarged, or the layer's own" choices:"image|layer"`
}

func tapped() Tapped { return Tapped{common(), "image"} }

// Validate refuses what [Common] refuses, except inner layers, and maps that keep an inner layer's channels
// at the image's size.
func (p Tapped) Validate() error {
	if p.several() {
		return stages.BadField("layer", "layer %s: class activation maps join several layers, and this "+
			"method makes its map at one", p.Layer)
	}
	return p.validate()
}

// validate is Validate for methods that join the maps of several layers, too.
func (p Tapped) validate() error {
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

// question returns the question for the model, with the rules of the backward pass.
func (p Tapped) question(ctx context.Context, e *stages.Env, n *program.Net,
	rules relevance.Policy) (lower.Question, error) {
	q := lower.Question{Rules: rules, Probability: p.Output == "probability"}
	if p.atInput(n) {
		return q, nil
	}
	var err error
	q.Layer, err = p.layer(ctx, e, n)
	return q, err
}

// atInput reports whether maps are made at the input itself: a text is explained at its embedding.
func (p Tapped) atInput(n *program.Net) bool { return p.Layer == "input" && n.Text == nil }

// layer returns the name of the layer's value, and warns of a final layer that isn't near the output.
func (p Tapped) layer(ctx context.Context, e *stages.Env, n *program.Net) (string, error) {
	name, err := n.Layer(ctx, e.Slot, string(p.Layer))
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

// Remark reports a final layer that is followed by most of the model's convolutions.
func (p Tapped) Remark(g *onnx.Graph) string {
	if p.Layer != "final" {
		return ""
	}
	_, final := relevance.Layers(g)
	if behind, all := relevance.ConvsAfter(g, final); final != "" && 2*behind > all {
		return fmt.Sprintf("layer final is %q, and %d of the model's %d convolutions come after it: no "+
			"later value has places and is on all paths; name a layer to choose another", final, behind, all)
	}
	return ""
}

// put puts the map of item i, given values of the layer's shape.
func (p Tapped) put(e *stages.Env, i int, n *program.Net, values []float64, shape []int) error {
	if p.atInput(n) {
		putMap(e, i, p.reduced(values, n.Channels, n.Height, n.Width))
		return nil
	}
	planes, err := p.planesOf(n, values, shape)
	if err != nil {
		return err
	}
	if p.Reduce == "none" { // at the layer's size
		putMap(e, i, stages.NewTensor(singles(planes.values), planes.channels, planes.height, planes.width))
		return nil
	}
	if n.Text != nil {
		p.warnCancelled(e, i, planes)
	}
	p.putPlane(e, i, n, p.flat(planes.values, planes.pixels()), planes, "bilinear")
	return nil
}

// putPlane puts the map of item i, given one value for each place of a layer.
func (p Tapped) putPlane(e *stages.Env, i int, n *program.Net, plane []float64, at planes, how string) {
	height, width := n.Height, n.Width
	if p.Size == "layer" || n.Text != nil {
		height, width = at.height, at.width
	}
	shape := []int{height, width}
	if p.Reduce == "none" {
		shape = []int{1, height, width}
	}
	large := resized(plane, at.height, at.width, height, width, how)
	putMap(e, i, stages.NewTensor(singles(large), shape...))
}

// planes are the values of a layer as channels on a grid of places that covers the image.
type planes struct {
	values                  []float64
	channels, height, width int
}

func (p planes) pixels() int { return p.height * p.width }

// planesOf arranges the layer's values as planes.
func (p Tapped) planesOf(n *program.Net, values []float64, shape []int) (planes, error) {
	if n.Text != nil && len(shape) == 2 {
		return byChannel(values, shape[0], 0, 1, shape[0]), nil
	}
	at, ok := planesOf(n.Tokens, values, shape)
	if !ok {
		return at, p.unplaced(shape)
	}
	return at, nil
}

// unplaced refuses a layer whose values of an image are nowhere in it.
func (p Tapped) unplaced(shape []int) error {
	where := ""
	if len(shape) == 2 { // they may be tokens
		where = ", or state by tokens of model/onnx how its tokens lie in the image, such as tokens: 5+7x7"
	}
	return stages.BadField("layer", "layer %s: values of shape %v for an image have no places in the image; "+
		"those of feature maps and of tokens have, such as layer final where the model has one%s", p.Layer,
		shape, where)
}

// planesOf arranges the values of a layer as planes: feature maps [K,h,w], or tokens [T,K] of a grid of
// patches, as stated or square. Tokens before these have no place and are dropped. Other values have no
// places.
func planesOf(stated onnx.Tokens, values []float64, shape []int) (_ planes, ok bool) {
	switch len(shape) {
	case 3:
		return planes{values, shape[0], shape[1], shape[2]}, true
	case 2:
		if at := relevance.Places(stated, shape[0]); !at.IsZero() {
			return byChannel(values, shape[0], at.Prefix, at.Height, at.Width), true
		}
	}
	return planes{}, false
}

// byChannel arranges tokens [T,K] as planes: those before the first have no place.
func byChannel(values []float64, tokens, first, height, width int) planes {
	p := planes{make([]float64, 0, len(values)), len(values) / tokens, height, width}
	for c := range p.channels {
		for t := first; t < tokens; t++ {
			p.values = append(p.values, values[t*p.channels+c])
		}
	}
	return p
}
