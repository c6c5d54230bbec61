package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
)

// CAM are the parameters of class activation maps: sums of a layer's channels, weighted by their effect on
// the explained output.
type CAM struct {
	Tapped
	ReLU     bool   `yaml:"relu" doc:"keep only positive values of the map"`
	Upsample string `yaml:"upsample" doc:"how the layer's map is enlarged" choices:"bilinear|nearest"`
	Joined
}

// Validate refuses what [Tapped] refuses, except several layers, and those that can't be joined.
func (p CAM) Validate() error {
	if err := p.checkLayers(p.Tapped, !p.ReLU); err != nil {
		return err
	}
	return p.validate()
}

// Remark is that of [Tapped] about the first layer with one.
func (p CAM) Remark(g *onnx.Graph) string {
	return p.remarkEach(g, func(at Tapped) string { return at.Remark(g) })
}

// atFinal returns the parameters of methods that make their map at the last layer with places.
func atFinal() Tapped {
	p := tapped()
	p.Layer = "final"
	return p
}

// defaultCAM returns the defaults of CAM.
func defaultCAM() CAM {
	return CAM{Tapped: atFinal(), ReLU: true, Upsample: "bilinear", Joined: joined()}
}

// A weightRule writes the weight of each place of a channel, given the channel's values and derivatives
// there.
type weightRule func(value, gradient, weights []float64, response float64)

// putCAM puts the map of item i of a method that needs one backward pass to each layer.
func (p CAM) putCAM(e *stages.Env, i int, n *program.Net, results []passResult, rule weightRule) error {
	var maps []layerMap
	for k, layer := range p.Layer.List() {
		cam, at, err := p.at(layer).cam(e, i, n, results[k], rule, p.ReLU)
		if err != nil {
			return err
		}
		maps = append(maps, layerMap{cam, at})
	}
	p.putJoined(e, i, n, maps, p.Joined, p.Upsample)
	return nil
}

// cam returns item i's class activation map at the layer, and the layer's planes.
func (p Tapped) cam(e *stages.Env, i int, n *program.Net, d passResult, rule weightRule,
	relu bool) ([]float64, planes, error) {
	gradient, err := p.planesOf(n, doubles(d.Gradient), d.Shape)
	if err != nil {
		return nil, planes{}, err
	}
	value, err := p.planesOf(n, doubles(d.Value), d.Shape)
	if err != nil {
		return nil, planes{}, err
	}
	gradient, value = gradient.own(e, i, n), value.own(e, i, n)
	return value.combined(relu, func(c int, weights []float64) {
		rule(value.channel(c), gradient.channel(c), weights, d.response)
	}), value, nil
}

// channel returns the values of channel c.
func (p planes) channel(c int) []float64 { return p.values[c*p.pixels() : (c+1)*p.pixels()] }

// combined returns the weighted sum of the channels; weigh writes the weights of a channel. With relu,
// negative sums become 0.
func (p planes) combined(relu bool, weigh func(c int, weights []float64)) []float64 {
	sum, weights := make([]float64, p.pixels()), make([]float64, p.pixels())
	for c := range p.channels {
		weigh(c, weights)
		for k, v := range p.channel(c) {
			sum[k] += float64(weights[k] * v)
		}
	}
	if relu {
		for k, v := range sum {
			sum[k] = max(v, 0)
		}
	}
	return sum
}

// meanGradient weights a channel by its mean derivative.
func meanGradient(_, gradient, weights []float64, _ float64) {
	sum := 0.0
	for _, g := range gradient {
		sum += g
	}
	fill(weights, sum/float64(len(gradient)))
}

func doubles(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
