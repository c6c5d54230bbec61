package program

import (
	"context"
	"fmt"
	"slices"
	"strconv"

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
	// Rules is the policy that the walk backwards follows.
	Rules relevance.Policy
	// Probability asks for the target's probability rather than its logit.
	Probability bool
	// Start is what the walk begins with.
	Start Start
	// Counts names how much each class counts where the walk begins, which then
	// [Gradient.Counts] takes; "" stands for what is explained.
	Counts string
}

// A Summand is what is added up of derivatives.
type Summand string

const (
	Plain     Summand = "derivative"
	Magnitude Summand = "magnitude"
	Square    Summand = "square"
)

// A walk is a way to make a program that goes forwards, and back perhaps.
type walk struct {
	Question
	name  string
	feeds func(b bounds) []feed // the first is what is explained [rows, classes], if it goes back
	// images emits the normalised images [batch or 1,C,H,W].
	images func(f *onnx.Fragment) string
	// layer, if set, emits what takes the place of the layer's value, which otherwise
	// is returned unless derivatives are added up.
	layer func(f *onnx.Fragment) string
	// forward says that the way ends at the answer; alone, that this alone is returned.
	forward, alone bool
	// sum, if set, adds up the derivatives of a batch into one.
	sum Summand
	// also are further questions, each answered by a way back of its own.
	also []Question
	// audit keeps accounts of what becomes of relevance on the way of the first.
	audit bool
	// rehearsed says that the program won't run, so that its weights needn't have the
	// form that is fastest.
	rehearsed bool
	// plain says that the program won't run and is compared with others, in which the
	// same nodes are to be seen: [halve] and [widen] change some, but no bits.
	plain bool
}

// String tells questions of a net apart.
func (q Question) String() string {
	return fmt.Sprintf("%q by %s, probability %t, start %q, counts %q", q.Layer, q.Rules.Name, q.Probability, q.Start, q.Counts)
}

// counted returns the input of a program that says how much each class counts.
func (q Question) counted() string {
	if q.Counts == "" {
		return "targets"
	}
	return "counts of " + q.Counts
}

// bounds returns the shapes around a question, and what is differentiated with
// respect to.
func (n *Net) bounds(g *onnx.Graph, batch int, q Question) (b bounds, wrt string, err error) {
	b = bounds{batch: batch, image: []int{n.Channels, n.Height, n.Width}}
	if q.Layer == "" {
		b.inner = b.image
		return b, n.Input, nil
	}
	Arrange(g, q.Layer)
	shape := g.Shape(q.Layer)
	if len(shape) == 0 || shape[0] != batch {
		return b, "", stages.BadField("layer", "layer %q: no value of the model's graph, or none with a row for every image", q.Layer)
	}
	b.inner = shape[1:]
	return b, q.Layer, nil
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

// keepWalk returns the program of a walk on a slot, compiled when it isn't
// there.
func (n *Net) keepWalk(ctx context.Context, slot stages.Slot, batch int, w walk) (*Program, error) {
	key := fmt.Sprintf("%s of %v", w.name, w.Question)
	for _, q := range w.also {
		key += ", and of " + q.String()
	}
	if r, ok := slot.(*Rehearsal); ok {
		w.rehearsed = !r.exact
	}
	// Weights twice, and turned around for each way back.
	return n.keep(slot, key, batch, int64(4+2*len(w.also))*n.size, func() (*onnx.Model, recipe, error) {
		g, err := n.Graph(ctx, slot, batch)
		if err != nil {
			return nil, recipe{}, err
		}
		r, err := n.compileWalk(g, batch, w)
		return g.Model, r, err
	})
}

// compileWalk makes the program of a walk of the graph, and returns what it is fed
// and returns.
func (n *Net) compileWalk(g *onnx.Graph, batch int, w walk) (r recipe, err error) {
	defer onnx.Sound(&err)
	r, _, err = n.build(g, batch, w)
	return r, err
}

// build makes the program of a walk of the graph, and returns what it is fed and
// returns, and the nodes that go forward.
func (n *Net) build(g *onnx.Graph, batch int, w walk) (r recipe, forward []*onnxpb.NodeProto, err error) {
	r = recipe{canonical: true}
	all := append([]Question{w.Question}, w.also...)
	at, wrt := make([]bounds, len(all)), make([]string, len(all))
	for k, q := range all {
		if at[k], wrt[k], err = n.bounds(g, batch, q); err != nil {
			return r, nil, err
		}
	}
	if !w.Rules.Apart && !w.rehearsed {
		merge(g, w.Layer)
	}
	narrow(g, all)
	if !w.plain {
		halve(g, all)
	}
	if !w.plain && !w.rehearsed {
		widen(g, all)
	}
	r.feeds = w.feeds(at[0])
	inputs, err := declare(g, r.feeds)
	if err != nil {
		return r, nil, err
	}
	if w.layer != nil && w.Layer != "" {
		wrt[0] = replace(g, w.Layer, w.layer)
	}
	before := g.Fragment()
	// A single image stands for all rows.
	rows := before.Ints("every_row", []int64{int64(batch), 1, 1, 1}, 4)
	n.enter(before, before.Op("Expand", []string{w.images(before), rows}), g.Types[n.Input].Elem)
	g.Before(before)

	after := g.Fragment()
	after.OpTo(answer, "Reshape", []string{n.Output, after.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)})
	g.After(after)

	// Rules look at who reads a value; so each sees the model alone, and nothing of
	// the other ways back.
	forward = slices.Clip(g.Proto.Graph.Node)
	var ways []*onnxpb.NodeProto
	for k, q := range all {
		g.Proto.Graph.Node = forward
		number := ""
		if k > 0 {
			number = strconv.Itoa(k + 1)
		}
		way := w
		way.Question = q
		if err := n.way(g, number, wrt[k], at[k], way, &r); err != nil {
			return r, nil, err
		}
		ways = append(ways, g.Proto.Graph.Node[len(forward):]...)
	}
	g.Proto.Graph.Node = append(forward, ways...)
	if w.audit {
		r.returns = append(r.returns, account(g, r.entries))
	}
	steady(g, batch)
	seal(g, inputs, r)
	return r, forward, nil
}

// way emits what answers one question, and adds to the recipe what the program
// returns of that.
func (n *Net) way(g *onnx.Graph, number, wrt string, at bounds, w walk, r *recipe) error {
	if !w.forward {
		f := g.Fragment()
		begins, err := n.begin(f, g, number, at.batch, w.Question)
		if err != nil {
			return err
		}
		g.After(f)
		back, entries, err := n.back(g, number, begins, wrt, at, w)
		if err != nil {
			return err
		}
		r.returns, r.entries = append(r.returns, back), append(r.entries, entries...)
	}
	if w.sum == "" && w.layer == nil && !w.alone {
		r.returns = append(r.returns, value(g, number, at, w.Question))
	}
	if !w.forward && w.Start != StartDerivative {
		r.returns = append(r.returns, feed{"began" + number, []int{at.batch, n.Classes}})
	}
	return nil
}

// value emits what the program returns of a layer, and returns it.
func value(g *onnx.Graph, number string, at bounds, q Question) feed {
	of := "runexp_images"
	if q.Layer != "" {
		of = q.Layer
	}
	f := g.Fragment()
	f.OpTo("runexp_value"+number, "Identity", []string{of})
	g.After(f)
	return feed{"value" + number, at.layer(at.batch)}
}

// back emits the way from where it begins back to wrt, and returns what the program
// returns of it, and its accounts if it keeps them.
func (n *Net) back(g *onnx.Graph, number string, begins beginning, wrt string, at bounds, w walk) (feed, []relevance.Entry, error) {
	backward := func(g *onnx.Graph, seeds map[string]string, wrt []string, p relevance.Policy) (map[string]string, []relevance.Entry, error) {
		arrived, err := relevance.Backward(g, seeds, wrt, p)
		return arrived, nil, err
	}
	if w.audit {
		backward = relevance.Audit
	}
	arrived, entries, err := backward(g, map[string]string{begins.at: begins.seed}, []string{wrt}, w.Rules)
	if err != nil {
		return feed{}, nil, err
	}
	derivative := arrived[wrt]
	if derivative == "" {
		return feed{}, nil, stages.BadField("layer", "layer %q: nothing of the answer depends on it", w.Layer)
	}
	end := g.Fragment()
	if w.Layer == "" {
		derivative = n.leave(end, derivative)
	}
	returned := feed{"derivative" + number, at.layer(at.batch)}
	if w.sum != "" {
		derivative = addUp(end, derivative, at.batch, w.sum)
		returned.shape = at.layer(1)
	}
	end.OpTo("runexp_derivative"+number, "Identity", []string{derivative})
	g.After(end)
	return returned, entries, nil
}

// replace puts what emit makes in the place of a value, for all that read it, and
// returns its name.
func replace(g *onnx.Graph, value string, emit func(f *onnx.Fragment) string) string {
	name := g.Fresh("runexp_layer")
	f := g.Fragment()
	f.OpTo(name, "Identity", []string{emit(f)})
	for _, node := range g.Proto.Graph.Node {
		onnx.Retake(node, map[string]string{value: name})
	}
	g.Types[name] = g.Types[value]
	g.Before(f)
	return name
}

// seed emits what the walk backwards starts with at the model's output: the
// derivative of the explained number, given s, how much each class counts for it.
func (n *Net) seed(f *onnx.Fragment, g *onnx.Graph, s string, batch int, probability bool) string {
	switch {
	case probability && !n.Probabilities:
		s = n.slope(f, answer, s)
	case !probability && n.Probabilities:
		// Of the logarithm, and 0 for an unexplained class whose probability is 0.
		p := f.Op("Max", []string{answer, f.Floats("smallest", []float32{smallest})})
		s = f.Op("Div", []string{s, p})
	default:
		s = f.Op("Expand", []string{s, f.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)})
	}
	return formed(f, g, s, g.Shape(n.Output))
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

// named returns what is returned under a name for row i; nil if nothing is.
func (p *Program) named(name string, i int) []float32 {
	k := slices.Index(p.names, name)
	if k < 0 {
		return nil
	}
	return p.part(p.returned[k], i)
}

// part returns what a returned tensor has for row i.
func (p *Program) part(t *ort.Tensor[float32], i int) []float32 {
	size := len(t.Data) / p.Batch
	return t.Data[i*size : (i+1)*size]
}

// Shape returns the shape of the layer's value for one image.
func (p *Program) Shape() []int { return slices.Clone(p.shapes[0][1:]) }
