package lower

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// A Survey describes a model's file without knowing its shapes.
type Survey struct {
	BatchDependent   bool // an operator may be batch-dependent, or is rewritten with one that may be
	ReleaseDependent bool // supported releases of ONNX Runtime compute one of its nodes differently
	ProviderForms    bool // some provider computes an operator wrongly
	Dense            bool // a matrix may be the weights of a large fully connected layer
}

// LargeDense is the smallest number of weights of a large fully connected layer.
const LargeDense = 8 << 20

// SurveyOf surveys a model's file.
func SurveyOf(file func() ([]byte, error)) (Survey, error) {
	m, err := read(file)
	if err != nil {
		return Survey{}, err
	}
	return Survey{anyNode(m.Proto, mayBeBatchDependent), anyNode(m.Proto, releaseDependent),
		anyNode(m.Proto, func(n *onnxpb.NodeProto) bool { return rightForms[n.OpType] != nil }),
		slices.ContainsFunc(m.Proto.Graph.Initializer, func(t *onnxpb.TensorProto) bool {
			return len(t.Dims) == 2 && onnx.Size(onnx.ShapeOf(t)) >= LargeDense
		})}, nil
}

// mayBeBatchDependent reports whether a node is batch-dependent, or rewritten with nodes that are.
func mayBeBatchDependent(n *onnxpb.NodeProto) bool {
	return batchDependent[n.OpType] != nil ||
		slices.Contains([]string{"GroupNormalization", "Mish", "ReduceLogSum"}, n.OpType)
}

// OtherPrecision reports whether a model's file has floats other than float32, or quantised weights. It
// also returns true if the file can't be read by the passes that convert these.
func OtherPrecision(file func() ([]byte, error)) (bool, error) {
	m, err := read(file)
	if err != nil {
		return false, err
	}
	if err := rewrite.TopologicalOrder(m); err != nil {
		return false, err
	}
	if changed, err := rewrite.SinglePrecision(m); changed || err != nil {
		return true, nil
	}
	weights, err := rewrite.Dequantise(m)
	return weights > 0 || err != nil, nil
}
