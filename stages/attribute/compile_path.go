package attribute

import (
	"errors"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// atPoints emits the sum of weighted derivatives at the input, one after the other: at emits the images of a
// step, and term what is added of their derivative. Both get the step's part of each.
//
// The first step is the images themselves: it adds nothing, and gives the model's answer, by which the others
// know the explained class. So the file has the model, and its weights, once.
func (m *emission) atPoints(p Tapped, each []standalone.Single, at func(of []standalone.Single) string,
	term func(derivative string, of []standalone.Single) string) (out standalone.Numbers, err error) {
	q, err := p.question(m.ctx, m.env, m.net, relevance.Derivative())
	if err != nil {
		return out, err
	}
	if q.Layer != "" {
		return out, stages.BadField("layer", "layer %s: a file makes maps that add up derivatives at the "+
			"input", p.Layer)
	}
	l, err := m.net.LowerGradient(m.ctx, m.Slot, m.Batch, q)
	if err != nil {
		return out, err
	}
	states := []standalone.State{{Shape: m.imageShape()}, {Shape: []int{m.Batch, m.net.Classes}}}
	file, err := m.graph()
	if err != nil {
		return out, err
	}
	for _, v := range m.names.own {
		states = append(states, standalone.State{Shape: file.Shape(v.Name), Elem: file.Types[v.Name].Elem})
	}
	first := make([]float64, each[0].Shape[0]+1)
	first[0] = 1
	all := []standalone.Single{m.column(first)}
	for _, v := range each {
		all = append(all, m.oneMore(v))
	}
	names := m.Scan(states, all, func(before []string, of []standalone.Single) []string {
		isFirst := m.Op("Cast", []string{of[0].Name},
			onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_BOOL)})
		choose := func(v, w string) string { return m.Op("Where", []string{isFirst, v, w}) }
		in := m.Include(l, map[string]string{"images": choose(m.images, at(of[1:])), "targets": before[1]})
		sum := m.Op("Add", []string{before[0], term(in.Output("derivative").Name, of[1:])})
		explained := m.Fresh("runexp_explained")
		failed := m.explain(in.Answer(), explained)
		after := []string{choose(before[0], sum), choose(explained, before[1])}
		values, ownFailed := m.own(in)
		err = errors.Join(failed, ownFailed)
		for i, v := range values {
			after = append(after, choose(v.name, before[2+i]))
		}
		return after
	})
	if err != nil {
		return out, err
	}
	for i, v := range m.names.own {
		m.outputs = append(m.outputs, ownOutput{names[2+i], file.Types[v.Name]})
	}
	return m.Double(standalone.Single{Name: names[0], Shape: states[0].Shape}), err
}

// oneMore emits values of steps with one more step before them, whose part is that of the first.
func (m *emission) oneMore(v standalone.Single) standalone.Single {
	shape := append([]int{v.Shape[0] + 1}, v.Shape[1:]...)
	first := m.Op("Slice", []string{v.Name, m.Ints(0), m.Ints(1), m.Ints(0)})
	return standalone.Single{Name: m.Op("Concat", []string{first, v.Name}, onnx.Attr{Name: "axis", Value: 0}),
		Shape: shape}
}

func (m *emission) imageShape() []int {
	return []int{m.Batch, m.net.Channels, m.net.Height, m.net.Width}
}

// column emits one number a step.
func (m *emission) column(v []float64) standalone.Single {
	return standalone.Single{Name: m.Singles(singles(v), int64(len(v))), Shape: []int{len(v)}}
}

// reference emits the image with which others are compared, [rows, C, H, W].
func (m *emission) reference(baseline string, rows int) (standalone.Single, error) {
	if baseline != "zero" && baseline != "black" {
		return standalone.Single{}, stages.BadField("baseline", "baseline %s is for texts", baseline)
	}
	b, err := baselinesOf(m.env, m.net, baseline)
	if err != nil {
		return standalone.Single{}, err
	}
	n := m.net
	one := m.Singles(b.of(0), 1, int64(n.Channels), int64(n.Height), int64(n.Width))
	shape := []int{rows, n.Channels, n.Height, n.Width}
	if rows > 1 {
		one = m.Op("Expand", []string{one, m.Shape(shape...)})
	}
	return standalone.Single{Name: one, Shape: shape}, nil
}

func (p IntegratedGradientsParams) emit(m *emission) (out standalone.Numbers, err error) {
	at, weights := quadrature(p.Rule, p.Steps)
	from, err := m.reference(p.Baseline, 1)
	if err != nil {
		return out, err
	}
	way := m.Op("Sub", []string{m.images, from.Name})
	sum, err := m.atPoints(p.Tapped, []standalone.Single{m.column(at), m.column(weights)},
		func(of []standalone.Single) string {
			return m.Op("Add", []string{from.Name, m.Op("Mul", []string{of[0].Name, way})})
		}, func(derivative string, of []standalone.Single) string {
			return m.Op("Mul", []string{derivative, of[1].Name})
		})
	if err != nil {
		return out, err
	}
	to := m.Double(standalone.Single{Name: m.images, Shape: m.imageShape()})
	return m.put(p.Tapped, sum.Times(to.Minus(m.Double(from))))
}

func (p SmoothGradParams) emit(m *emission) (out standalone.Numbers, err error) {
	noise, err := m.noises(p.Copies)
	if err != nil {
		return out, err
	}
	weight := m.Singles([]float32{float32(1 / float64(p.Samples))})
	sum, err := m.atPoints(p.Tapped, []standalone.Single{noise},
		func(of []standalone.Single) string {
			return m.Op("Add", []string{m.images, m.deviating(p.Copies, of[0]).Name})
		}, func(derivative string, _ []standalone.Single) string {
			switch lower.Summand(p.Mean) {
			case lower.Magnitude:
				derivative = m.Op("Abs", []string{derivative})
			case lower.Square:
				derivative = m.Op("Mul", []string{derivative, derivative})
			}
			return m.Op("Mul", []string{derivative, weight})
		})
	if err != nil {
		return out, err
	}
	return m.put(p.Tapped, sum)
}

// copies returns the parameters of the noise.
func (p Copies) copies() Copies { return p }

// noises returns draws of the standard normal distribution, [samples, 1 or batch, C, H, W], of the file or of
// an input.
func (m *emission) noises(p Copies) (standalone.Single, error) {
	n := m.net
	if m.NoiseInput {
		shape := []int{p.Samples, m.Batch, n.Channels, n.Height, n.Width}
		m.noise = &onnx.Value{Name: m.names.noise, Elem: onnxpb.TensorProto_FLOAT, Shape: shape, Known: true}
		return standalone.Single{Name: m.names.noise, Shape: shape}, nil
	}
	v := standardNormal(m.env, p.Samples*n.Size())
	return standalone.Single{Name: m.Singles(v, int64(p.Samples), 1, int64(n.Channels), int64(n.Height),
		int64(n.Width)), Shape: []int{p.Samples, 1, n.Channels, n.Height, n.Width}}, nil
}

// standardNormal returns draws by the seed of e.
func standardNormal(e *stages.Env, n int) []float32 {
	r := e.SharedRand("noise")
	v := make([]float32, n)
	for k := range v {
		v[k] = float32(r.NormFloat64())
	}
	return v
}

// deviating emits noise of the standard deviation in p, given standard normal draws.
func (m *emission) deviating(p Copies, draws standalone.Single) standalone.Single {
	deviation := m.Number(p.Noise)
	if p.Scale != "absolute" {
		x := m.Double(standalone.Single{Name: m.images, Shape: m.imageShape()})
		deviation = x.Range().Times(deviation)
	}
	return m.Double(draws).Times(deviation).Single()
}

func (p DeepLIFTParams) emit(m *emission) (out standalone.Numbers, err error) {
	q, err := p.question(m.ctx, m.env, m.net, relevance.Policy{})
	if err != nil {
		return out, err
	}
	l, err := m.net.LowerComparison(m.ctx, m.Slot, m.Batch, q, p.Variant == "official")
	if err != nil {
		return out, err
	}
	from, err := m.reference(p.Baseline, l.Reference.Inputs[0].Shape[0])
	if err != nil {
		return out, err
	}
	from.Name = m.Op("Add", []string{from.Name, m.zeroOfImages()})
	in := m.include(l, map[string]string{"images": m.images, "targets": m.weights, "reference": from.Name})
	there := from
	if q.Layer != "" {
		there = m.Include(l.Reference, map[string]string{"reference": from.Name}).Output("reference_value")
	}
	multipliers, value := m.Double(in.Output("derivative")), m.Double(in.Output("value"))
	return m.put(p.Tapped, multipliers.Times(value.Minus(m.Double(there))))
}

// zeroOfImages emits 0, of which a runtime doesn't know that it is constant. With it, what a model makes of a
// reference isn't computed when the file is loaded, by other kernels than those that run.
func (m *emission) zeroOfImages() string {
	zeros, ones, axes := m.Ints(0, 0, 0, 0), m.Ints(1, 1, 1, 1), m.Ints(0, 1, 2, 3)
	x := m.Op("Slice", []string{m.images, zeros, ones, axes})
	return m.Op("Sub", []string{x, x})
}
