package model

import (
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
)

// sized returns the height and width of a model's images, given those that its file has and the size that the
// parameters ask for. One number for both fills what is open; where the file fixes both, the size is another
// than the file's, see [resizable].
func sized(height, width int, asked picture.Size) (int, int, error) {
	open := func(d int) bool { return d == onnx.Free }
	switch {
	case asked.IsZero() && open(height) && open(width):
		return 0, 0, stages.BadField("size",
			"the model leaves the size of its input open: give the parameter size")
	case asked.IsZero() && open(height):
		return 0, 0, stages.BadField("size",
			"the model leaves the height of its input open and fixes the width at %d: give the parameter size", width)
	case asked.IsZero() && open(width):
		return 0, 0, stages.BadField("size",
			"the model fixes the height of its input at %d and leaves the width open: give the parameter size", height)
	case asked.IsZero():
		return height, width, nil
	case open(height) == open(width):
		return asked.H, asked.W, nil
	case open(height) && asked.H != asked.W && asked.W != width:
		return 0, 0, stages.BadField("size", "size is %v, and the model fixes the width of its input at %d",
			asked, width)
	case open(width) && asked.H != asked.W && asked.H != height:
		return 0, 0, stages.BadField("size", "size is %v, and the model fixes the height of its input at %d",
			asked, height)
	case open(height):
		return asked.H, width, nil
	}
	return height, asked.W, nil
}

// openSize reports whether a model leaves the height or the width of its images open.
func openSize(in onnx.Value, p ONNXParams) (height, width bool) {
	if takesImages(in) != nil {
		return false, false
	}
	var s modelfile.Spec
	_ = frame(&s, in, p) // which finds the layout before it looks at sizes
	_, h, w := axes(s.Layout)
	return in.Shape[h] == onnx.Free, in.Shape[w] == onnx.Free
}

// axes returns which dimensions of an input are its channels, height and width.
func axes(layout string) (channels, height, width int) {
	if layout == modelfile.NHWC {
		return 3, 1, 2
	}
	return 1, 2, 3
}

// resizable refuses images of another size than the file fixes for a model that reads its places as a
// sequence: a recurrent layer has weights for places of one number of values, and ONNX Runtime takes others
// without looking.
func resizable(m *onnx.Model, s modelfile.Spec, in onnx.Value) error {
	_, h, w := axes(s.Layout)
	fixed := picture.Size{H: in.Shape[h], W: in.Shape[w]}
	asked := picture.Size{H: s.Height, W: s.Width}
	if fixed.H == onnx.Free || fixed.W == onnx.Free || fixed == asked {
		return nil
	}
	if n := sequential(m); n != nil {
		return stages.BadField("size",
			"size is %v, and the model takes images of %v alone: its %s reads places as a sequence", asked,
			fixed, n.Label())
	}
	return nil
}

// sequential returns a recurrent node of a model, nil if there is none.
func sequential(m *onnx.Model) *onnx.Node {
	for _, n := range m.Proto.Graph.Node {
		if slices.Contains([]string{"GRU", "LSTM", "Loop", "RNN", "Scan"}, n.OpType) {
			return &onnx.Node{NodeProto: n}
		}
	}
	return nil
}
