package program

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/ort"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A Question says what is differentiated, with respect to what, and by which
// rules.
type Question struct {
	// Layer is the value of the graph that the derivative is taken with respect
	// to; "" stands for the normalised image.
	Layer string
	// Rules is the name of the policy that the walk backwards follows, see
	// [relevance.Named].
	Rules string
	// Probability asks for the target's probability rather than its logit.
	Probability bool
}

// A Summand is what is added up of derivatives.
type Summand string

const (
	Plain     Summand = "derivative"
	Magnitude Summand = "magnitude"
	Square    Summand = "square"
)

// A walk is a way to make a program that goes forwards and back.
type walk struct {
	Question
	name  string
	feeds func(b bounds) []feed // the first is what is explained [rows, classes]
	// images emits the normalised images [batch or 1,C,H,W].
	images func(f *onnx.Fragment) string
	// layer, if set, emits what takes the place of the layer's value.
	layer func(f *onnx.Fragment) string
	// sum, if set, adds up the derivatives of a batch into one.
	sum Summand
}

// bounds are the shapes that feeds have.
type bounds struct {
	batch        int
	image, inner []int // of one image, and of the layer's value for it
}

func (b bounds) images(rows int) []int { return append([]int{rows}, b.image...) }
func (b bounds) layer(rows int) []int  { return append([]int{rows}, b.inner...) }

// column is the shape of one number a row, which broadcasts over the layer.
func (b bounds) column() []int {
	shape := []int{b.batch}
	for range b.inner {
		shape = append(shape, 1)
	}
	return shape
}

// keepBackward returns the program of a walk on a slot, compiled when it isn't
// there.
func (n *Net) keepBackward(ctx context.Context, slot stages.Slot, batch int, w walk) (*Program, error) {
	key := fmt.Sprintf("program %s of %q by %s, probability %t, batch %d of %s", w.name, w.Layer, w.Rules, w.Probability, batch, n.digest)
	g, err := n.Graph(ctx, slot, batch)
	if err != nil {
		return nil, err
	}
	// Weights twice, and turned around for the way back; activations wait for it.
	weight := 4*int64(len(n.onnx)) + int64(batch*n.Size())*4*64
	c, err := slot.Keep(key, weight, func() (io.Closer, error) {
		b, r, err := n.compileBackward(g, batch, w)
		if err != nil {
			return nil, err
		}
		return load(b, batch, n.Classes, r, slot.Device())
	})
	if err != nil {
		return nil, err
	}
	return c.(*Program), nil
}

// compileBackward returns the ONNX bytes of a walk and what it is fed and returns.
func (n *Net) compileBackward(g *onnx.Graph, batch int, w walk) ([]byte, recipe, error) {
	r := recipe{name: w.name, canonical: true}
	at := bounds{batch: batch, image: []int{n.Channels, n.Height, n.Width}}
	wrt := n.Input
	at.inner = at.image
	if w.Layer != "" {
		wrt = w.Layer
		shape := g.Shape(w.Layer)
		if len(shape) == 0 || shape[0] != batch {
			return nil, r, fmt.Errorf("layer %q: no value of the model's graph, or none with a row for every image", w.Layer)
		}
		at.inner = shape[1:]
	}
	merge(g, w.Layer)
	r.feeds = w.feeds(at)
	inputs := make([]onnx.Value, len(r.feeds))
	for i, f := range r.feeds {
		inputs[i] = onnx.Value{Name: g.Fresh("runexp_" + f.name), Elem: onnxpb.TensorProto_FLOAT, Shape: f.shape, Known: true}
		if inputs[i].Name != "runexp_"+f.name {
			return nil, r, fmt.Errorf("the model already has a value called %q", "runexp_"+f.name)
		}
		g.Types[inputs[i].Name] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: f.shape}
	}
	if w.layer != nil && w.Layer != "" {
		wrt = replace(g, w.Layer, w.layer)
	}
	before := g.Fragment()
	// A single image stands for all rows.
	rows := before.Ints("every_row", []int64{int64(batch), 1, 1, 1}, 4)
	n.enter(before, before.Op("Expand", []string{w.images(before), rows}), g.Types[n.Input].Elem)
	g.Before(before)

	after := g.Fragment()
	after.OpTo(answer, "Reshape", []string{n.Output, after.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)})
	seed := n.seed(after, g.Shape(n.Output), batch, w.Probability)
	g.Types[seed] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: g.Shape(n.Output)}
	g.After(after)
	policy, err := relevance.Named(w.Rules)
	if err != nil {
		return nil, r, err
	}
	arrived, err := relevance.Backward(g, map[string]string{n.Output: seed}, []string{wrt}, policy)
	if err != nil {
		return nil, r, err
	}
	derivative := arrived[wrt]
	if derivative == "" {
		return nil, r, fmt.Errorf("layer %q: nothing of the answer depends on it", w.Layer)
	}

	end := g.Fragment()
	if w.Layer == "" {
		derivative = n.leave(end, derivative)
	}
	r.returns = []feed{{"derivative", at.layer(batch)}}
	if w.sum != "" {
		derivative = addUp(end, derivative, batch, w.sum)
		r.returns[0].shape = at.layer(1)
	}
	end.OpTo("runexp_derivative", "Identity", []string{derivative})
	if w.sum == "" {
		value := "runexp_images"
		if w.Layer != "" {
			value = w.Layer
		}
		end.OpTo("runexp_value", "Identity", []string{value})
		r.returns = append(r.returns, feed{"value", at.layer(batch)})
	}
	g.After(end)
	g.SetInputs(inputs...)
	outputs := []onnx.Value{{Name: answer, Elem: onnxpb.TensorProto_FLOAT}}
	for _, f := range r.returns {
		outputs = append(outputs, onnx.Value{Name: "runexp_" + f.name, Elem: onnxpb.TensorProto_FLOAT})
	}
	g.SetOutputs(outputs...)
	g.ForgetShapes()
	g.Prune()
	b, err := g.Encode()
	return b, r, err
}

// replace puts what emit makes in the place of a value, for all that read it, and
// returns its name.
func replace(g *onnx.Graph, value string, emit func(f *onnx.Fragment) string) string {
	name := g.Fresh("runexp_layer")
	f := g.Fragment()
	f.OpTo(name, "Identity", []string{emit(f)})
	for _, node := range g.Proto.Graph.Node {
		for i, in := range node.Input {
			if in == value {
				node.Input[i] = name
			}
		}
	}
	g.Types[name] = g.Types[value]
	g.Before(f)
	return name
}

// seed emits what the walk backwards starts with at the model's output: the
// derivative of the explained number, given how much each class counts for it.
func (n *Net) seed(f *onnx.Fragment, shape []int, batch int, probability bool) string {
	s := "runexp_targets"
	switch {
	case probability && !n.Probabilities:
		// With p = softmax(z), d(Σ tᵢpᵢ)/dz = p·(t − Σ tᵢpᵢ).
		p := f.Op("Softmax", []string{answer}, onnx.Attr{Name: "axis", Value: -1})
		ones := make([]float32, n.Classes)
		for i := range ones {
			ones[i] = 1
		}
		mean := f.Op("MatMul", []string{f.Op("Mul", []string{p, s}), f.Floats("ones", ones, int64(n.Classes), 1)})
		s = f.Op("Mul", []string{p, f.Op("Sub", []string{s, mean})})
	case !probability && n.Probabilities:
		// Of the logarithm, and 0 for an unexplained class whose probability is 0.
		p := f.Op("Max", []string{answer, f.Floats("smallest", []float32{smallest})})
		s = f.Op("Div", []string{s, p})
	default:
		s = f.Op("Expand", []string{s, f.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)})
	}
	long := make([]int64, len(shape))
	for i, d := range shape {
		long[i] = int64(d)
	}
	return f.Op("Reshape", []string{s, f.Ints("output", long, int64(len(long)))})
}

// smallest is about the smallest float32 that has all its digits.
const smallest = 1.2e-38

// leave emits the way back: what has the form of the model's input becomes
// what has the form of normalised images.
func (n *Net) leave(f *onnx.Fragment, x string) string {
	if n.Layout == modelfile.NHWC {
		x = f.Op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	}
	if n.Order == modelfile.BGR {
		x = bgr(f, x)
	}
	return x
}

// addUp emits runexp_sum plus the rows of x times runexp_weights, one row after
// the other: the sum has the same bits whatever number of rows a run has.
func addUp(f *onnx.Fragment, x string, batch int, s Summand) string {
	switch s {
	case Magnitude:
		x = f.Op("Abs", []string{x})
	case Square:
		x = f.Op("Mul", []string{x, x})
	}
	x = f.Op("Mul", []string{x, "runexp_weights"})
	sum := "runexp_sum"
	for i := range batch {
		row := f.Op("Slice", []string{x, f.Ints("from", []int64{int64(i)}, 1), f.Ints("to", []int64{int64(i + 1)}, 1), f.Ints("axis", []int64{0}, 1)})
		sum = f.Op("Add", []string{sum, row})
	}
	return sum
}

// weigh writes how much each class counts for what t explains.
func (t Target) weigh(classes []float32) {
	clear(classes)
	classes[t.Class] = 1
	if t.Minus >= 0 {
		classes[t.Minus] = -1
	}
}

// part returns what a returned tensor has for row i.
func (p *Program) part(t *ort.Tensor[float32], i int) []float32 {
	size := len(t.Data) / p.Batch
	return t.Data[i*size : (i+1)*size]
}

// Shape returns the shape of the layer's value for one image.
func (p *Program) Shape() []int { return slices.Clone(p.shapes[0][1:]) }
