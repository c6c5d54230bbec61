package attribute

import (
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// A weightNodes is a [weightRule] as nodes: it emits the weight of each place of a channel, or of all of
// them, given values and derivatives [batch, K, h, w].
type weightNodes func(m *emission, value, gradient standalone.Numbers) (standalone.Numbers, error)

// emitCAM emits the map of a method that needs one backward pass, as [CAM.putCAM] makes it.
func (p CAM) emitCAM(m *emission, of backwardParams, rule weightNodes) (out standalone.Numbers, err error) {
	results, err := m.backward(of)
	if err != nil {
		return out, err
	}
	var maps []standalone.Numbers
	for k, layer := range p.Layer.List() {
		plane, err := m.cam(p.at(layer), results[k], rule, p.ReLU)
		if err != nil {
			return out, err
		}
		maps = append(maps, plane)
	}
	return m.emitJoined(p.Tapped, maps, p.Joined, p.Upsample), nil
}

// cam emits the class activation map at the layer, [batch, h, w].
func (m *emission) cam(p Tapped, r emitted, rule weightNodes, relu bool) (out standalone.Numbers, err error) {
	gradient, err := m.planes(p, r.gradient)
	if err != nil {
		return out, err
	}
	value, err := m.planes(p, r.value)
	if err != nil {
		return out, err
	}
	weights, err := rule(m, value, gradient)
	if err != nil {
		return out, err
	}
	out = value.Times(weights).Sum(1)
	if relu {
		out = out.Relu()
	}
	return out, nil
}

// meanGradientNodes are [meanGradient].
func meanGradientNodes(_ *emission, _, gradient standalone.Numbers) (standalone.Numbers, error) {
	return gradient.KeepMean(2, 3), nil
}

// byPlaceNodes are [byPlace].
func byPlaceNodes(_ *emission, _, gradient standalone.Numbers) (standalone.Numbers, error) {
	return gradient, nil
}

// byPositiveNodes are [byPositive].
func byPositiveNodes(_ *emission, _, gradient standalone.Numbers) (standalone.Numbers, error) {
	return gradient.Relu(), nil
}

// response emits the explained logit, [batch, 1, 1, 1].
func (m *emission) response(c Common) (out standalone.Numbers, err error) {
	if c.Output != "logit" || m.net.Probabilities {
		return out, stages.BadField("output", "a factor of the whole map is computed of logits, and the "+
			"explained output is a probability")
	}
	shape := []int{m.Batch, m.net.Classes}
	answer := m.Double(standalone.Single{Name: m.main.Answer(), Shape: shape})
	of := m.Double(standalone.Single{Name: m.weights, Shape: shape})
	return answer.Times(of).Sum(1).Reshape(m.Batch, 1, 1, 1), nil
}
