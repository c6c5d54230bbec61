package lower

import (
	"errors"
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A seed is the value at which a backward pass starts, and the cotangent there, of the same shape.
type seed struct{ at, cotangent string }

// seed emits the seed of question k.
func (u *unit) seed(f *onnx.Fragment, k int, q Question) (seed, error) {
	switch {
	case u.Kind == Comparison && u.head != nil:
		return seed{Answer, u.counts}, nil
	case u.Kind == Comparison:
		return seed{u.explained, prefix + "targets"}, nil
	case u.head != nil && q.Start != StartDerivative:
		return u.seedOfHead(f, k, q)
	case q.Start == StartDerivative && (u.head != nil || !(q.Rules.Slopes && u.Probabilities)):
		// Rules of slopes may stop at the softmax that makes probabilities: they start at its logits.
		return seed{u.Output, u.derivative(f, prefix+q.CountsInput(), q.Probability)}, nil
	}
	at, slope, err := u.logits()
	if err != nil {
		return seed{}, err
	}
	rows := f.Ints("rows", u.rows(), 2)
	z := f.Op("Reshape", []string{at, rows})
	s := f.Op("Expand", []string{prefix + q.CountsInput(), rows})
	target := s
	if q.Probability {
		s = slope(f, z, s)
	}
	switch q.Start {
	case StartLogits:
		s = f.Op("Mul", []string{s, z})
	case StartTarget:
		s = f.Op("Mul",
			[]string{s, rowSums(f, f.Op("Mul", []string{f.Op("Relu", []string{target}), z}), u.Classes)})
	}
	f.OpTo(prefix+"began"+number(k), "Identity", []string{s})
	return seed{at, u.shaped(f, s, u.graph.Shape(at))}, nil
}

// seedOfHead emits the seed of a question about an expression: it starts at the answer, each element of which
// counts as much as the expression's derivative there.
func (u *unit) seedOfHead(f *onnx.Fragment, k int, q Question) (seed, error) {
	s := u.counts
	switch q.Start {
	case StartLogits:
		s = f.Op("Mul", []string{s, Answer})
	case StartTarget:
		return seed{}, errors.New("an expression has no class whose logit the backward pass could start at")
	}
	f.OpTo(prefix+"began"+number(k), "Identity", []string{s})
	return seed{u.Output, u.shaped(f, s, u.graph.Shape(u.Output))}, nil
}

// derivative emits the derivative of the explained number with respect to the model's output, given s, how
// much each class counts.
func (u *unit) derivative(f *onnx.Fragment, s string, probability bool) string {
	if u.head != nil {
		return u.shaped(f, u.counts, u.graph.Shape(u.Output))
	}
	return u.derivativeAt(f, Answer, s, probability)
}

// derivativeAt does so for classes, with respect to an output of which answer are the rows.
func (u *unit) derivativeAt(f *onnx.Fragment, answer, s string, probability bool) string {
	switch {
	case probability && !u.Probabilities:
		s = u.slope(f, answer, s)
	case !probability && u.Probabilities:
		// of the logarithm, and 0 for an unexplained class whose probability is 0
		p := f.Op("Max", []string{answer, f.Floats("smallest", []float32{smallest})})
		s = f.Op("Div", []string{s, p})
	default:
		s = f.Op("Expand", []string{s, f.Ints("rows", u.rows(), 2)})
	}
	return u.shaped(f, s, u.graph.Shape(u.Output))
}

// smallest is approximately the smallest float32 with full precision.
const smallest = 1.2e-38

// logits returns the value of the graph that holds the logits: the answer, or the input of the softmax or
// sigmoid that makes it; and a function that emits the derivative of Σ tᵢpᵢ with respect to their rows z.
func (u *unit) logits() (at string, slope func(f *onnx.Fragment, z, t string) string, err error) {
	v := u.Output
	for u.Probabilities {
		node := u.graph.Producer(v)
		if node == nil {
			return "", nil, errors.New("the model answers with probabilities and has no softmax or sigmoid " +
				"that makes them, so relevance has no logits to start at")
		}
		v = onnx.Node{NodeProto: node}.In(0)
		switch node.OpType {
		case "Softmax":
			return v, u.softmaxSlope, nil
		case "Sigmoid":
			return v, sigmoidSlope, nil
		case "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast":
		default:
			return "", nil, fmt.Errorf("the model answers with probabilities that a %s makes rather than a "+
				"softmax or sigmoid, so relevance has no logits to start at", node.OpType)
		}
	}
	return v, u.slope, nil
}

// slope emits the derivative of Σ tᵢpᵢ with respect to the rows z, which are logits.
func (u *unit) slope(f *onnx.Fragment, z, t string) string {
	if u.Independent {
		return sigmoidSlope(f, z, t)
	}
	return u.softmaxSlope(f, z, t)
}

// softmaxSlope emits the derivative of Σ tᵢpᵢ with respect to the rows z, where p = softmax(z): p·(t − Σ
// tᵢpᵢ).
func (u *unit) softmaxSlope(f *onnx.Fragment, z, t string) string {
	if u.Heads > 0 {
		rows := f.Ints("rows", u.rows(), 2)
		heads := f.Ints("heads", int64s(u.headRows()), 2)
		t = f.Op("Reshape", []string{f.Op("Expand", []string{t, rows}), heads})
		z = f.Op("Reshape", []string{z, heads})
		return f.Op("Reshape", []string{softmaxSlope(f, z, t, u.PerHead()), rows})
	}
	return softmaxSlope(f, z, t, u.Classes)
}

// softmaxSlope emits the derivative for rows of the classes of one head.
func softmaxSlope(f *onnx.Fragment, z, t string, classes int) string {
	p := f.Op("Softmax", []string{z}, onnx.Attr{Name: "axis", Value: -1})
	sum := rowSums(f, f.Op("Mul", []string{p, t}), classes)
	return f.Op("Mul", []string{p, f.Op("Sub", []string{t, sum})})
}

// headRows returns the shape of the answer with a row for each head.
func (u *unit) headRows() []int { return []int{u.batch * max(1, u.Heads), u.PerHead()} }

// sigmoidSlope emits the derivative if p = sigmoid(z): tᵢpᵢ(1 − pᵢ). Written as sigmoid(−zᵢ), 1 − pᵢ keeps
// its digits.
func sigmoidSlope(f *onnx.Fragment, z, t string) string {
	p, q := f.Op("Sigmoid", []string{z}), f.Op("Sigmoid", []string{f.Op("Neg", []string{z})})
	return f.Op("Mul", []string{t, f.Op("Mul", []string{p, q})})
}

// rowSums emits the sum of each row of this many classes, [rows, 1].
func rowSums(f *onnx.Fragment, v string, classes int) string {
	ones := make([]float32, classes)
	for i := range ones {
		ones[i] = 1
	}
	return f.Op("MatMul", []string{v, f.Floats("ones", ones, int64(classes), 1)})
}

// shaped emits a cotangent in the shape of the value at which a backward pass starts.
func (u *unit) shaped(f *onnx.Fragment, v string, shape []int) string {
	dims := int64s(shape)
	v = f.Op("Reshape", []string{v, f.Ints("output", dims, int64(len(dims)))})
	u.graph.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	return v
}

// int64s converts a shape, or other numbers, to ONNX's type.
func int64s(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}
