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

// A head is the part of a model that converts logits into its output.
type head struct {
	op string // the activation: Softmax, LogSoftmax, Sigmoid …; "" if unknown

	// logits is the activation's input, or "" if that isn't floating-point.
	logits string

	// independent means that every class has a probability of its own, as with Sigmoid.
	independent bool
}

// headOf traces a model's output back to the activation that computes it, through operators that preserve
// probabilities: reshapes, permutations, type conversions, rounding, clipping and logarithms.
func headOf(m *onnx.Model, output string) head {
	makers := map[string]*onnxpb.NodeProto{}
	for _, n := range m.Proto.Graph.Node {
		for _, v := range n.Output {
			makers[v] = n
		}
	}
	logs := 0 // number of logarithms minus number of exponentials so far
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
		case "Div": // Exp divided by its sum: a softmax written without the operator
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
			low, high := clipBounds(m, n, makers)
			if !(low <= probabilityTolerance && high >= 1-probabilityTolerance) {
				return head{}
			}
		default:
			return head{}
		}
	}
	return head{}
}

// clipBounds returns the bounds of a Clip, NaN for a bound that isn't constant.
func clipBounds(m *onnx.Model, n onnx.Node, makers map[string]*onnxpb.NodeProto) (low, high float64) {
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

// scalarOf returns the value of a constant of one float32, or NaN for other constants.
func scalarOf(t *onnxpb.TensorProto) float64 {
	v, err := onnx.Float32s(t)
	if err != nil || len(v) != 1 {
		return math.NaN()
	}
	return float64(v[0])
}

// floating reports whether a type is floating-point or unknown.
func floating(t onnxpb.TensorProto_DataType) bool {
	switch t {
	case onnxpb.TensorProto_UNDEFINED, onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_FLOAT16,
		onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_DOUBLE:
		return true
	}
	return false
}

// findHead probes a model with output_kind auto and completes its Spec. The Spec's output becomes the logits
// if applying the head to them reproduces the model's output.
func findHead(ctx context.Context, m *modelfile.Model, h head) error {
	if h.logits != "" {
		cut := *m
		cut.Spec.Output, cut.Spec.Independent = h.logits, h.independent
		logits, err := probe(ctx, &cut)
		if err == nil {
			// A softmax of one logit is always 1, whatever the image: no class.
			cut.Spec.Independent = cut.Spec.Independent || cut.Spec.Classes == 1
			err = matchesHead(ctx, cut.Spec, logits, *m)
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
	s.Probabilities = h.op != "" && !slices.ContainsFunc(answers, notProbability) ||
		distributions(answers, s.Classes)
	s.Independent = h.independent && s.Probabilities
	return nil
}

// declaredHead probes a model whose output_kind is given, and rejects a kind that contradicts the outputs.
func declaredHead(ctx context.Context, m *modelfile.Model) error {
	answers, err := probe(ctx, m)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(answers, notProbability); m.Spec.Probabilities && i >= 0 {
		return stages.BadField("output_kind",
			"output_kind is probabilities, but the model's output has values outside [0,1], such as %.4g: "+
				"these are logits", answers[i])
	}
	return nil
}

// notProbability reports whether v can't be a probability. NaN can.
func notProbability(v float32) bool { return v < -probabilityTolerance || v > 1+probabilityTolerance }

// quantisationTolerance is the largest allowed difference between the probabilities computed from logits and
// those returned by the model, which may be quantised in steps of 1/127.
const quantisationTolerance = 0.01

// matchesHead returns nil if the probabilities computed from logits, or their logarithms, equal the model's
// output on the same images.
func matchesHead(ctx context.Context, s modelfile.Spec, logits []float32, returned modelfile.Model) error {
	answers, _, err := answer(ctx, returned, probeImages(returned.Spec), max(1, returned.Spec.Batch))
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
			if math.Abs(p-value(float64(v))) > quantisationTolerance {
				return false
			}
		}
		return true
	}
	if !near(func(v float64) float64 { return v }) && !near(math.Exp) {
		return errors.New("the head doesn't reproduce the model's output")
	}
	return nil
}
