package lower

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// verbatim makes a program of the unchanged file: nodes before it compute the model's input, nodes after it
// the answer.
func (u *unit) verbatim() error {
	m := u.model
	elem := onnxpb.TensorProto_FLOAT
	for _, v := range m.Inputs() {
		if v.Name == u.Input {
			elem = v.Elem
		}
	}
	around := Shapes{Batch: u.batch, Image: []int{u.Channels, u.Height, u.Width}}
	if err := u.declare(u.Inputs(around)); err != nil {
		return err
	}
	before := m.Fragment()
	u.enter(before, u.Images(before), elem)
	m.Before(before)
	// When ORT loads the program, it drops Casts of a value to its own type. The Reshape drops the
	// dimensions of size 1 that some heads have; without a known number of classes there is none.
	after := m.Fragment()
	single := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}
	if u.Classes == 0 {
		after.OpTo(Answer, "Cast", []string{u.Output}, single)
	} else {
		shape := after.Ints("classes", []int64{-1, int64(u.Classes)}, 2)
		after.OpTo(Answer, "Reshape", []string{after.Op("Cast", []string{u.Output}, single), shape})
	}
	for i, v := range u.Watched {
		u.watch(after, i, v)
	}
	m.After(after)
	return u.seal()
}

// mostWatched is the largest number of elements of a watched value that are returned.
const mostWatched = 1 << 18

// watch returns the shape of a value, and as many of its elements as fit.
func (u *unit) watch(f *onnx.Fragment, i int, value string) {
	single := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}
	shape, numbers := In(fmt.Sprintf("watched_shape_%d", i)), In(fmt.Sprintf("watched_%d", i))
	u.signature.Outputs = append(u.signature.Outputs, shape, numbers)
	f.OpTo(shape.Value(), "Cast", []string{f.Op("Shape", []string{value})}, single)
	row := f.Op("Reshape", []string{f.Op("Cast", []string{value}, single), f.Ints("row", []int64{-1}, 1)})
	if u.model.Opset() < 10 {
		f.OpTo(numbers.Value(), "Slice", []string{row}, onnx.Attr{Name: "starts", Value: []int64{0}},
			onnx.Attr{Name: "ends", Value: []int64{mostWatched}})
		return
	}
	f.OpTo(numbers.Value(), "Slice",
		[]string{row, f.Ints("from", []int64{0}, 1), f.Ints("to", []int64{mostWatched}, 1)})
}
