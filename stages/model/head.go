package model

import (
	"math"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A head is the part of a model that converts logits into its output.
type head struct {
	op string // the activation: Softmax, LogSoftmax, Sigmoid …; "" if unknown

	// logits is the activation's input, or "" if that isn't floating-point.
	logits string

	// independent means that every class has a probability of its own, as with Sigmoid.
	independent bool
}

// An activation ends the search for a head.
type activation struct {
	least, most int  // logarithms, less exponentials, that may follow it
	independent bool // each class has its own
	quantised   bool // its input isn't floating-point
}

var activations = map[string]activation{
	"Softmax":        {most: 1},
	"Sigmoid":        {most: 1, independent: true},
	"LogSoftmax":     {least: -1},
	"QLinearSoftmax": {quantised: true},
	"QLinearSigmoid": {quantised: true, independent: true},
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
		if a, ok := activations[n.OpType]; ok {
			h := head{op: n.OpType, independent: a.independent}
			if logs < a.least || logs > a.most {
				return head{}
			}
			if !a.quantised {
				h.logits = output
			}
			return h
		}
		switch {
		case n.OpType == "Log":
			logs++
		case n.OpType == "Exp":
			logs--
		case n.OpType == "Div" && (logs == 0 || logs == 1):
			return writtenSoftmax(n, makers)
		case !preserves(m, n, makers):
			return head{}
		}
	}
	return head{}
}

// writtenSoftmax returns the head of Exp divided by its sum: a softmax written without the operator. Where
// each image subtracts a number of its own before, the logits stand before that.
func writtenSoftmax(n onnx.Node, makers map[string]*onnxpb.NodeProto) head {
	e, sum := onnx.Node{NodeProto: makers[n.In(0)]}, onnx.Node{NodeProto: makers[n.In(1)]}
	if e.GetOpType() != "Exp" || sum.GetOpType() != "ReduceSum" || sum.In(0) != n.In(0) {
		return head{}
	}
	if shift := (onnx.Node{NodeProto: makers[e.In(0)]}); shift.GetOpType() == "Sub" &&
		makers[shift.In(1)] != nil && makers[shift.In(1)].OpType != "Constant" {
		return head{}
	}
	return head{op: "Softmax", logits: e.In(0)}
}

// preserves reports whether an operator returns its input's probabilities.
func preserves(m *onnx.Model, n onnx.Node, makers map[string]*onnxpb.NodeProto) bool {
	switch n.OpType {
	case "Identity", "Flatten", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Dropout", "QuantizeLinear",
		"DequantizeLinear":
		return true
	case "Cast":
		return floating(onnxpb.TensorProto_DataType(n.Int("to", 0)))
	case "Clip":
		low, high := clipBounds(m, n, makers)
		return low <= probabilityTolerance && high >= 1-probabilityTolerance
	}
	return false
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
		if t := onnx.ConstantOf(onnx.Node{NodeProto: makers[name]}); t != nil {
			return scalarOf(t)
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

// notProbability reports whether v can't be a probability. NaN can.
func notProbability(v float32) bool { return v < -probabilityTolerance || v > 1+probabilityTolerance }

// quantisationTolerance is the largest allowed difference between the probabilities computed from logits and
// those returned by the model, which may be quantised in steps of 1/127.
const quantisationTolerance = 0.01

// reproduces reports whether the head computes the answers from rows of logits. A Softmax of single numbers
// doesn't: it is 1.
func (h head) reproduces(logits, rows [][]float32) bool {
	if len(logits) != len(rows) || len(rows) == 0 || len(logits[0]) != len(rows[0]) ||
		len(rows[0]) == 1 && !h.independent {
		return false
	}
	near := func(value func(p float64) float64) bool {
		for i, row := range rows {
			p := softmaxOrSigmoid(logits[i], h.independent)
			for c, v := range row {
				if !(math.Abs(p[c]-value(float64(v))) <= quantisationTolerance) {
					return false
				}
			}
		}
		return true
	}
	return near(func(v float64) float64 { return v }) || near(math.Exp)
}
