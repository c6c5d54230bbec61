package model

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
)

// A head is what turns logits into a model's output.
type head struct {
	op string // the activation: Softmax, LogSoftmax, Sigmoid …; "" if none is known

	// logits is the value that the activation takes, "" where that isn't of floating-point numbers.
	logits string

	// independent says that every class has a probability of its own.
	independent bool
}

// headOf follows a model's output back to the activation that makes it, through all that keeps probabilities:
// their shape, order and type, rounding, bounds and the logarithm.
func headOf(m *onnx.Model, output string) head {
	makers := map[string]*onnxpb.NodeProto{}
	for _, n := range m.Proto.Graph.Node {
		for _, v := range n.Output {
			makers[v] = n
		}
	}
	logs := 0 // how many more logarithms than exponentials lie behind
	for range len(m.Proto.Graph.Node) {
		proto := makers[output]
		if proto == nil || len(proto.Input) == 0 || proto.Output[0] != output {
			return head{}
		}
		n := onnx.Node{NodeProto: proto}
		output = n.In(0)
		switch n.OpType {
		case "Softmax", "Sigmoid":
			if logs == 0 || logs == 1 {
				return head{op: n.OpType, logits: output, independent: n.OpType == "Sigmoid"}
			}
			return head{}
		case "LogSoftmax":
			if logs == 0 || logs == -1 {
				return head{op: n.OpType, logits: output}
			}
			return head{}
		case "QLinearSoftmax", "QLinearSigmoid":
			if logs == 0 {
				return head{op: n.OpType, independent: n.OpType == "QLinearSigmoid"}
			}
			return head{}
		case "Log":
			logs++
		case "Exp":
			logs--
		case "Div": // Exp over its sum, as exporters write a softmax that has no operator
			e, sum := onnx.Node{NodeProto: makers[output]}, onnx.Node{NodeProto: makers[n.In(1)]}
			if e.GetOpType() != "Exp" || sum.GetOpType() != "ReduceSum" || sum.In(0) != output || logs < 0 ||
				logs > 1 {
				return head{}
			}
			return head{op: "Softmax", logits: e.In(0)}
		case "Identity", "Flatten", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Dropout",
			"QuantizeLinear", "DequantizeLinear":
		case "Cast":
			if !floating(onnxpb.TensorProto_DataType(n.Int("to", 0))) {
				return head{}
			}
		case "Clip":
			if low, high := bounds(m, n, makers); !(low <= rounded && high >= 1-rounded) {
				return head{}
			}
		default:
			return head{}
		}
	}
	return head{}
}

// bounds returns the bounds of a Clip, NaN for one that isn't constant.
func bounds(m *onnx.Model, n onnx.Node, makers map[string]*onnxpb.NodeProto) (low, high float64) {
	bound := func(i int, attr string, none float64) float64 {
		name := n.In(i)
		if name == "" {
			return float64(n.Float(attr, float32(none)))
		}
		for _, t := range m.Proto.Graph.Initializer {
			if t.Name == name {
				return scalarOf(t)
			}
		}
		if c := makers[name]; c != nil && c.OpType == "Constant" && len(c.Attribute) == 1 &&
			c.Attribute[0].T != nil {
			return scalarOf(c.Attribute[0].T)
		}
		return math.NaN()
	}
	return bound(1, "min", math.Inf(-1)), bound(2, "max", math.Inf(1))
}

// scalarOf returns the number that a constant of single precision holds, else NaN.
func scalarOf(t *onnxpb.TensorProto) float64 {
	v, err := onnx.Float32s(t)
	if err != nil || len(v) != 1 {
		return math.NaN()
	}
	return float64(v[0])
}

// floating reports whether values of a type are floating-point numbers, as far as that is known.
func floating(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_UNDEFINED, onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_FLOAT16,
		onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_DOUBLE:
		return true
	}
	return false
}

// findHead runs a model whose head is looked for, and completes its specification: what it answers with is
// the logits if the head proves to make of these what the model returns.
func findHead(ctx context.Context, m *modelfile.Model, h head) error {
	if h.logits != "" {
		cut := *m
		cut.Spec.Output, cut.Spec.Independent = h.logits, h.independent
		logits, err := probe(ctx, &cut)
		if err == nil {
			single(&cut.Spec)
			err = explains(ctx, cut.Spec, logits, *m)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
			*m = cut
			return err
		}
	}
	answers, err := probe(ctx, m)
	if err != nil {
		return err
	}
	s := &m.Spec
	s.Probabilities = h.op != "" && !slices.ContainsFunc(answers, impossible) ||
		distributions(answers, s.Classes)
	s.Independent = h.independent && s.Probabilities
	single(s)
	return nil
}

// said runs a model of which the parameters say what it answers with, and refuses what can't be.
func said(ctx context.Context, m *modelfile.Model) error {
	answers, err := probe(ctx, m)
	if err != nil {
		return err
	}
	single(&m.Spec)
	if i := slices.IndexFunc(answers, impossible); m.Spec.Probabilities && i >= 0 {
		return stages.BadField("output_kind",
			"output_kind is probabilities, and the model answers with numbers outside [0,1], such as %.4g: "+
				"these are logits", answers[i])
	}
	return nil
}

// single gives a single class a probability of its own: a softmax of one logit is 1 whatever the image.
func single(s *modelfile.Spec) { s.Independent = s.Independent || s.Classes == 1 }

// impossible reports whether a number can't be a probability. What isn't a number tells nothing.
func impossible(v float32) bool { return v < -rounded || v > 1+rounded }

// quantised is how far the probabilities that logits stand for may lie from those that a model returns, which
// may have steps of 1/127.
const quantised = 0.01

// explains returns nil if the probabilities of logits are what a model returns for the same images, or the
// logarithms of these.
func explains(ctx context.Context, s modelfile.Spec, logits []float32, returned modelfile.Model) error {
	answers, _, err := answer(ctx, returned, probed(returned.Spec), max(1, returned.Spec.Batch))
	if err != nil {
		return err
	}
	if len(answers) != len(logits) {
		return errNoClasses
	}
	net := program.Net{Spec: s}
	near := func(value func(p float64) float64) bool {
		for i, v := range answers {
			row := logits[i/s.Classes*s.Classes:][:s.Classes]
			p := net.Probability(row, program.Target{Class: i % s.Classes, Minus: -1})
			if math.Abs(p-value(float64(v))) > quantised {
				return false
			}
		}
		return true
	}
	if !near(func(v float64) float64 { return v }) && !near(math.Exp) {
		return errors.New("the model returns other probabilities")
	}
	return nil
}
