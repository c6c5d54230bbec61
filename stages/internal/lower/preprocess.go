package lower

import (
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// preprocess computes the model's input from normalised images. A single image fills every row.
func (u *unit) preprocess() error {
	f := u.graph.Fragment()
	var images string
	if u.Kind&(Comparison|Attention) != 0 {
		images = u.Images(f)
	} else {
		rows := f.Ints("every_row", []int64{int64(u.batch), 1, 1, 1}, 4)
		images = f.Op("Expand", []string{u.Images(f), rows})
	}
	u.enter(f, images, u.graph.Types[u.Input].Elem)
	u.graph.Before(f)
	return nil
}

// enter emits the model's input, given normalised images.
func (u *unit) enter(f *onnx.Fragment, images string, elem onnxpb.TensorProto_DataType) {
	if u.Order == modelfile.BGR {
		images = bgr(f, images)
	}
	if u.ChannelsLast() {
		images = f.Op("Transpose", []string{images}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 3, 1}})
	}
	if u.Signal() {
		images = reshaped(f, images, u.inputShape())
	}
	f.OpTo(u.Input, "Cast", []string{images}, onnx.Attr{Name: "to", Value: int(elem)})
}

// leave is the inverse of enter: it emits a value of the form of the model's input in the form of
// normalised images.
func (u *unit) leave(f *onnx.Fragment, x string) string {
	switch {
	case u.Signal() && u.ChannelsLast():
		x = reshaped(f, x, []int{u.batch, u.Height, u.Width, u.Channels})
	case u.Signal():
		x = reshaped(f, x, []int{u.batch, u.Channels, u.Height, u.Width})
	}
	if u.ChannelsLast() {
		x = f.Op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	}
	if u.Order == modelfile.BGR {
		x = bgr(f, x)
	}
	return x
}

func reshaped(f *onnx.Fragment, x string, shape []int) string {
	return f.Op("Reshape", []string{x, f.Ints("signal", int64s(shape), int64(len(shape)))})
}

// bgr emits the exchange of the first channel with the third.
func bgr(f *onnx.Fragment, x string) string {
	return f.Op("Gather", []string{x, f.Ints("bgr", []int64{2, 1, 0}, 3)}, onnx.Attr{Name: "axis", Value: 1})
}
