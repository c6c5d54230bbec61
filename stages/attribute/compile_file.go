package attribute

import (
	"maps"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/internal/standalone"
)

// fileNames are the names of a compiled file's inputs and outputs.
type fileNames struct {
	own                          []onnx.Value // the model's outputs
	fed                          onnx.Value   // the model's input
	image, target, noise, mapped string
}

// namesIn returns names that the model's own outputs don't have.
func namesIn(n *program.Net, c Compilation) (names fileNames, err error) {
	file, err := n.Original()
	if err != nil {
		return names, err
	}
	d := standalone.New(1)
	for _, v := range file.Outputs() {
		names.own = append(names.own, v)
		d.Fresh(v.Name)
	}
	for _, v := range file.Inputs() {
		if v.Name == n.Input {
			names.fed = v
		}
	}
	if names.image = n.Input; c.Prepares {
		names.image = "image"
	}
	names.image = d.Fresh(names.image)
	names.target, names.noise, names.mapped = d.Fresh("target"), d.Fresh("noise"), d.Fresh("map")
	return names, nil
}

// reserve keeps nodes from making values of the file's names.
func (names fileNames) reserve(d *standalone.Draft) {
	for _, v := range names.own {
		d.Fresh(v.Name)
	}
	for _, v := range []string{names.image, names.target, names.noise, names.mapped} {
		d.Fresh(v)
	}
}

// file emits the whole file.
func (m *emission) file(out *Compiled) error {
	m.names.reserve(m.Draft)
	method, _ := emitterOf(m.Params)
	image := m.enter()
	m.weights = m.Fresh("runexp_class_weights")
	values, err := method.emit(m)
	if err != nil {
		return err
	}
	if !m.explained {
		if err = m.explain(m.main.Answer(), m.weights); err != nil {
			return err
		}
	}
	m.OpTo(m.names.mapped, "Identity", []string{values.Single().Name})
	inputs := []onnx.Value{image}
	if m.TargetInput {
		inputs = append(inputs, onnx.Value{Name: m.names.target, Elem: onnxpb.TensorProto_INT64,
			Shape: []int{m.Batch}, Known: true})
	}
	if m.noise != nil {
		inputs = append(inputs, *m.noise)
	}
	if m.outputs == nil {
		if m.outputs, err = m.own(*m.main); err != nil {
			return err
		}
	}
	outputs := m.publish(m.outputs)
	out.Map = m.names.mapped
	return m.Finish(inputs, append(outputs, onnx.Value{Name: m.names.mapped, Elem: onnxpb.TensorProto_FLOAT,
		Shape: values.Shape, Known: true}))
}

// enter emits the normalised images of the file's input, and returns that.
func (m *emission) enter() onnx.Value {
	n := m.net
	if m.Prepares {
		m.images = m.prepared(m.names.image)
		return onnx.Value{Name: m.names.image, Elem: onnxpb.TensorProto_FLOAT,
			Shape: []int{m.Batch, 3, n.Height, n.Width}, Known: true}
	}
	shape := []int{m.Batch, n.Channels, n.Height, n.Width}
	x := m.names.image
	if m.names.fed.Elem != onnxpb.TensorProto_FLOAT {
		x = m.Op("Cast", []string{x}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	}
	if n.Layout == modelfile.NHWC {
		shape = []int{m.Batch, n.Height, n.Width, n.Channels}
		x = m.Op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	}
	if n.Order == modelfile.BGR {
		x = m.Op("Gather", []string{x, m.Ints(2, 1, 0)}, onnx.Attr{Name: "axis", Value: 1})
	}
	m.images = x
	return onnx.Value{Name: m.names.image, Elem: m.names.fed.Elem, Shape: shape, Known: true}
}

// modelInput emits the model's own input, as its graph takes it, of the normalised images.
func (m *emission) modelInput() string {
	x := m.images
	if m.net.Order == modelfile.BGR {
		x = m.Op("Gather", []string{x, m.Ints(2, 1, 0)}, onnx.Attr{Name: "axis", Value: 1})
	}
	if m.net.Layout == modelfile.NHWC {
		x = m.Op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 3, 1}})
	}
	return x
}

// prepared emits what [modelfile.Spec.Normalise] makes of RGB images with values in [0,1], with its rounding.
func (m *emission) prepared(x string) string {
	n := m.net
	if n.Channels == 1 { // Rec. 601 luma, added up from red to blue
		luma := m.Op("Mul", []string{x, m.Singles([]float32{0.299, 0.587, 0.114}, 1, 3, 1, 1)})
		of := func(c int64) string {
			return m.Op("Slice", []string{luma, m.Ints(c), m.Ints(c + 1), m.Ints(1)})
		}
		x = m.Op("Add", []string{m.Op("Add", []string{of(0), of(1)}), of(2)})
	}
	channels := func(v []float64) string {
		one := make([]float32, len(v))
		for i := range v {
			one[i] = float32(v[i])
		}
		return m.Singles(one, 1, int64(len(v)), 1, 1)
	}
	x = m.Op("Mul", []string{x, m.Singles([]float32{float32(n.Scale)})})
	x = m.Op("Sub", []string{x, channels(n.Mean)})
	return m.Op("Div", []string{x, channels(n.Std)})
}

// include adds a program that runs the model on the images; the first one gives the model's answer.
func (m *emission) include(l *lower.Lowered, fed map[string]string) standalone.Included {
	in := m.Include(l, fed)
	if m.main == nil {
		m.main = &in
	}
	return in
}

// explain emits how much each class counts, under the name to, given the model's answer to the images.
func (m *emission) explain(answer, to string) error {
	m.explained = true
	fed, x := "", program.Expression{}
	if m.TargetInput {
		fed = m.names.target
	} else {
		var err error
		if x, err = m.expression(); err != nil {
			return err
		}
	}
	t, err := x.Nodes(m.Draft, answer, fed, m.net.Classes)
	if err != nil {
		return err
	}
	t.Weights(m.Draft, to, m.net.Classes)
	for _, emit := range m.later {
		if err := emit(t); err != nil {
			return err
		}
	}
	return nil
}

// expression returns the explained class by the method's parameter target.
func (m *emission) expression() (program.Expression, error) {
	of := m.Params.(interface{ explains() string })
	x, err := program.ParseExpression(of.explains())
	if err == nil {
		x, err = x.Resolve(m.Compilation.Model.Facts["labels"])
	}
	if err != nil {
		err = stages.BadField("target", "target: %w", err)
	}
	return x, err
}

// An ownOutput is one of the model's own outputs, as programs compute it.
type ownOutput struct {
	name string // of the value in the draft
	onnx.Type
}

// own emits what the model's own outputs are made of, given values of the program that runs the model on the
// images.
func (m *emission) own(main standalone.Included) (out []ownOutput, err error) {
	g, err := m.graph()
	if err != nil {
		return nil, err
	}
	at := main
	if slices.ContainsFunc(m.names.own, func(v onnx.Value) bool { return v.Name != m.net.Output }) {
		at = m.IncludeGraph(g, map[string]string{m.net.Input: m.modelInput(),
			m.net.Output: main.Value(m.net.Output)})
	}
	for _, v := range m.names.own {
		out = append(out, ownOutput{at.Value(v.Name), g.Types[v.Name]})
	}
	return out, nil
}

// graph returns the graph of the model's file, with all of its outputs.
func (m *emission) graph() (g *onnx.Graph, err error) {
	if m.of == nil {
		m.of, err = m.net.LowerFile(m.ctx, m.Batch)
	}
	return m.of, err
}

// publish emits the model's own outputs under their names and with their types, and returns them.
func (m *emission) publish(values []ownOutput) (out []onnx.Value) {
	for i, v := range m.names.own {
		if of := values[i]; of.Elem == v.Elem {
			m.OpTo(v.Name, "Identity", []string{of.name})
		} else {
			m.OpTo(v.Name, "Cast", []string{of.name}, onnx.Attr{Name: "to", Value: int(v.Elem)})
		}
		out = append(out, onnx.Value{Name: v.Name, Elem: v.Elem, Shape: values[i].Shape, Known: true})
	}
	return out
}

// unknownPixel is the value of any pixel at the input of a model whose preparation isn't known. Constants
// that depend on the values of pixels have it.
const unknownPixel = -1e33

// unprepared returns a model whose pixels have unknown values at its input.
func unprepared(d stages.Data) (stages.Data, error) {
	b, err := d.Load(0)
	if err != nil {
		return d, err
	}
	m, err := modelfile.Decode(b)
	if err != nil {
		return d, err
	}
	m.Spec.Scale = 1
	m.Spec.Mean = slices.Repeat([]float64{-unknownPixel}, m.Spec.Channels)
	m.Spec.Std = slices.Repeat([]float64{1}, m.Spec.Channels)
	if b, err = m.Encode(); err != nil {
		return d, err
	}
	d.Items = stages.ItemSlice{{Digest: stages.Sum(b)}}
	d.Load = func(int) ([]byte, error) { return b, nil }
	return d, nil
}

// readsPixels reports whether a constant depends on the value of a pixel.
func readsPixels(m *onnx.Model) bool {
	return slices.ContainsFunc(m.Proto.Graph.Initializer, func(t *onnxpb.TensorProto) bool {
		if onnx.Size(onnx.ShapeOf(t)) == 0 {
			return false
		}
		v, err := onnx.Float32s(t)
		return err == nil && slices.Contains(v, float32(unknownPixel))
	})
}

// foreign returns the first operator of a graph that isn't ONNX's own, "" if there is none.
func foreign(g *onnxpb.GraphProto) string {
	for _, n := range g.Node {
		if n.Domain != "" && n.Domain != "ai.onnx" {
			return n.Domain + "." + n.OpType
		}
		for _, body := range onnx.Bodies(n) {
			if name := foreign(body); name != "" {
				return name
			}
		}
	}
	return ""
}

// describe fills in what the file is, and its bytes.
func (out *Compiled) describe(m *onnx.Model, notes map[string]string) (err error) {
	list := func(values []onnx.Value) (all []CompiledValue) {
		for _, v := range values {
			all = append(all, CompiledValue{Name: v.Name, Shape: v.Shape,
				Type: strings.ToLower(v.Elem.String())})
		}
		return all
	}
	out.Inputs, out.Outputs = list(m.Inputs()), list(m.Outputs())
	out.Opset, out.Nodes = rewrite.Opset, len(m.Proto.Graph.Node)
	for _, n := range m.Proto.Graph.Node {
		for _, body := range onnx.Bodies(n) {
			out.Nodes += len(body.Node)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		m.Proto.MetadataProps = append(m.Proto.MetadataProps,
			&onnxpb.StringStringEntryProto{Key: key, Value: notes[key]})
	}
	out.ONNX, err = m.Encode()
	return err
}
