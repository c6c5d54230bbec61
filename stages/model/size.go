package model

import (
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
)

// inputSize returns the height and width of a model's images, given those in its file and the requested size.
// One number for both sets whichever is open; if the file fixes both, the requested size replaces them, see
// [checkResizable].
func inputSize(height, width int, requested picture.Size) (int, int, error) {
	open := func(d int) bool { return d == onnx.Free }
	switch {
	case requested.IsZero() && open(height) && open(width):
		return 0, 0, stages.BadField("size",
			"the model's input has an open height and width: set the parameter size")
	case requested.IsZero() && open(height):
		return 0, 0, stages.BadField("size",
			"the model's input has an open height and width %d: set the parameter size", width)
	case requested.IsZero() && open(width):
		return 0, 0, stages.BadField("size",
			"the model's input has height %d and an open width: set the parameter size", height)
	case requested.IsZero():
		return height, width, nil
	case open(height) == open(width):
		return requested.H, requested.W, nil
	case open(height) && requested.H != requested.W && requested.W != width:
		return 0, 0, stages.BadField("size", "size is %v, but the model's input has width %d", requested,
			width)
	case open(width) && requested.H != requested.W && requested.H != height:
		return 0, 0, stages.BadField("size", "size is %v, but the model's input has height %d", requested,
			height)
	case open(height):
		return requested.H, width, nil
	}
	return height, requested.W, nil
}

// openSize reports whether a model leaves the height or the width of its images open.
func openSize(in onnx.Value, p ONNXParams) (height, width bool) {
	if takesImages(in) != nil {
		return false, false
	}
	ways := waysOf(in, p)
	if len(ways) == 0 {
		return false, false
	}
	_, h, w := axes(ways[0].layout)
	return in.Shape[h] == onnx.Free, in.Shape[w] == onnx.Free
}

// axes returns the dimensions of an input that are its channels, height and width.
func axes(layout string) (channels, height, width int) {
	if layout == modelfile.NHWC {
		return 3, 1, 2
	}
	return 1, 2, 3
}

// checkResizable rejects a size other than the file's for a model that reads positions as a sequence: the
// weights of a recurrent layer fix the length of its vectors, and ONNX Runtime doesn't check it.
func checkResizable(m *onnx.Model, s modelfile.Spec, in onnx.Value) error {
	_, h, w := axes(s.Layout)
	fixed := picture.Size{H: in.Shape[h], W: in.Shape[w]}
	requested := picture.Size{H: s.Height, W: s.Width}
	if fixed.H == onnx.Free || fixed.W == onnx.Free || fixed == requested {
		return nil
	}
	if n := recurrentNode(m); n != nil {
		return stages.BadField("size",
			"size is %v, but the model only takes images of %v: its %s reads places as a sequence", requested,
			fixed, n.Label())
	}
	return nil
}

// recurrentNode returns a recurrent node of a model, or nil.
func recurrentNode(m *onnx.Model) *onnx.Node {
	for _, n := range m.Proto.Graph.Node {
		if slices.Contains([]string{"GRU", "LSTM", "Loop", "RNN", "Scan"}, n.OpType) {
			return &onnx.Node{NodeProto: n}
		}
	}
	return nil
}
