package behaviour

import (
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// luma are the weights of the channels, which add up without rounding.
var luma = [3]float32{0.25, 0.5, 0.25}

// Model returns the net as an ONNX model: a convolution that reads the mean of every cell of a gadget, ReLU,
// and a linear layer of all places.
func (n *Net) Model() (modelfile.Model, error) {
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8, ProducerName: "runexp",
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{Name: n.Kind,
			Initializer: append(n.convolution(), n.head()...),
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("cells", "Conv", []string{"images", "cells.weight", "cells.bias"},
					[]string{"cells"}, onnx.Attr{Name: "strides",
						Value: []int64{int64(n.Patch), int64(n.Patch * n.kind.cells)}}),
				onnx.NewNode("hidden", "Relu", []string{"cells"}, []string{"hidden"}),
				onnx.NewNode("flat", "Flatten", []string{"hidden"}, []string{"flat"}),
				onnx.NewNode("logits", "Gemm", []string{"flat", "logits.weight", "logits.bias"},
					[]string{"logits"}, onnx.Attr{Name: "transB", Value: 1}),
			}}}}
	m.SetInputs(onnx.Value{Name: "images", Elem: onnxpb.TensorProto_FLOAT, Known: true,
		Shape: []int{onnx.Free, 3, n.Side(), n.Side()}})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Known: true,
		Shape: []int{onnx.Free, Classes}})
	b, err := m.Encode()
	half := []float64{0.5, 0.5, 0.5}
	return modelfile.Model{ONNX: b, Spec: modelfile.Spec{
		Input: "images", Output: "logits", Height: n.Side(), Width: n.Side(), Channels: 3, Classes: Classes,
		Layout: modelfile.NCHW, Order: modelfile.RGB, Scale: 1, Mean: half, Std: half,
	}}, err
}

// convolution returns the kernels, which have the size of a gadget, and the biases of the hidden units.
func (n *Net) convolution() []*onnxpb.TensorProto {
	width := n.Patch * n.kind.cells
	var kernels, biases []float32
	for _, u := range n.kind.hidden {
		for _, l := range luma {
			for i := range n.Patch * width {
				factor := u.factors[i%width/n.Patch]
				kernels = append(kernels, l*float32(factor)/float32(n.Patch*n.Patch))
			}
		}
		biases = append(biases, float32(u.bias))
	}
	hidden := len(n.kind.hidden)
	return []*onnxpb.TensorProto{onnx.FloatTensor("cells.weight", kernels, hidden, 3, n.Patch, width),
		onnx.FloatTensor("cells.bias", biases, hidden)}
}

// head returns the weights of the hidden units of all places, channel by channel, and the biases.
func (n *Net) head() []*onnxpb.TensorProto {
	var weights []float32
	for c := range Classes {
		for m := range n.kind.hidden {
			for _, p := range n.places {
				weights = append(weights, float32(p.weights[c][m]))
			}
		}
	}
	return []*onnxpb.TensorProto{onnx.FloatTensor("logits.weight", weights, Classes,
		len(n.kind.hidden)*len(n.places)),
		onnx.FloatTensor("logits.bias", []float32{float32(n.bias), float32(-n.bias)}, Classes)}
}
