package program

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Start is what a walk backwards begins with.
type Start string

const (
	// StartDerivative is the derivative of the explained number with respect to the
	// model's answer. It is the zero Start.
	StartDerivative Start = ""
	// StartOnes is how much each class counts, at the logits: 1 at the target. For a
	// probability it is the derivative of that with respect to the logits.
	StartOnes Start = "ones"
	// StartLogits is StartOnes times the logits.
	StartLogits Start = "logits"
	// StartTarget is StartOnes times the logit of the class that counts 1.
	StartTarget Start = "target"
)

// logits returns the value of the graph that holds the logits, which is the answer or
// what the softmax or sigmoid that makes it reads, and what emits the derivative of
// Σ tᵢpᵢ with respect to their rows z.
func (n *Net) logits(g *onnx.Graph) (at string, slope func(f *onnx.Fragment, z, t string) string, err error) {
	v := n.Output
	for n.Probabilities {
		node := g.Producer(v)
		if node == nil {
			return "", nil, fmt.Errorf("the model answers with probabilities and has no softmax or sigmoid that makes them, so relevance has no logits to start at")
		}
		v = onnx.Node{NodeProto: node}.In(0)
		switch node.OpType {
		case "Softmax":
			return v, n.softmaxSlope, nil
		case "Sigmoid":
			return v, sigmoidSlope, nil
		case "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast":
		default:
			return "", nil, fmt.Errorf("the model answers with probabilities that a %s makes rather than a softmax or sigmoid, so relevance has no logits to start at", node.OpType)
		}
	}
	return v, n.slope, nil
}

// slope emits the derivative of Σ tᵢpᵢ with respect to the rows z, which are logits.
func (n *Net) slope(f *onnx.Fragment, z, t string) string {
	if n.Independent {
		return sigmoidSlope(f, z, t)
	}
	return n.softmaxSlope(f, z, t)
}

// A beginning is the value where a walk begins, and what it begins with there, of
// the same shape.
type beginning struct{ at, seed string }

// begin emits the beginning of a walk.
func (n *Net) begin(f *onnx.Fragment, g *onnx.Graph, number string, batch int, q Question) (beginning, error) {
	if q.Start == StartDerivative {
		return beginning{n.Output, n.seed(f, g, "runexp_"+q.counted(), batch, q.Probability)}, nil
	}
	at, slope, err := n.logits(g)
	if err != nil {
		return beginning{}, err
	}
	rows := f.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)
	z := f.Op("Reshape", []string{at, rows})
	s := f.Op("Expand", []string{"runexp_" + q.counted(), rows})
	target := s
	if q.Probability {
		s = slope(f, z, s)
	}
	switch q.Start {
	case StartLogits:
		s = f.Op("Mul", []string{s, z})
	case StartTarget:
		s = f.Op("Mul", []string{s, n.overClasses(f, f.Op("Mul", []string{f.Op("Relu", []string{target}), z}))})
	}
	f.OpTo("runexp_began"+number, "Identity", []string{s})
	return beginning{at, formed(f, g, s, g.Shape(at))}, nil
}

// softmaxSlope emits the derivative of Σ tᵢpᵢ with respect to the rows z, where
// p = softmax(z): p·(t − Σ tᵢpᵢ).
func (n *Net) softmaxSlope(f *onnx.Fragment, z, t string) string {
	p := f.Op("Softmax", []string{z}, onnx.Attr{Name: "axis", Value: -1})
	return f.Op("Mul", []string{p, f.Op("Sub", []string{t, n.overClasses(f, f.Op("Mul", []string{p, t}))})})
}

// sigmoidSlope emits the same where p = sigmoid(z): tᵢpᵢ(1 − pᵢ), where 1 − pᵢ, which
// keeps its digits so, is sigmoid(−zᵢ).
func sigmoidSlope(f *onnx.Fragment, z, t string) string {
	p, q := f.Op("Sigmoid", []string{z}), f.Op("Sigmoid", []string{f.Op("Neg", []string{z})})
	return f.Op("Mul", []string{t, f.Op("Mul", []string{p, q})})
}

// overClasses emits the sum of each row, [rows, 1].
func (n *Net) overClasses(f *onnx.Fragment, v string) string {
	ones := make([]float32, n.Classes)
	for i := range ones {
		ones[i] = 1
	}
	return f.Op("MatMul", []string{v, f.Floats("ones", ones, int64(n.Classes), 1)})
}

// formed emits what a walk begins with in the form of the value where it does.
func formed(f *onnx.Fragment, g *onnx.Graph, v string, shape []int) string {
	long := make([]int64, len(shape))
	for i, d := range shape {
		long[i] = int64(d)
	}
	v = f.Op("Reshape", []string{v, f.Ints("output", long, int64(len(long)))})
	g.Types[v] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
	return v
}
