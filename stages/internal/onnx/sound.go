package onnx

import (
	"errors"
	"fmt"
)

// ErrUnsound is what [Sound] makes of a panic.
var ErrUnsound = errors.New("the model's nodes, their shapes and attributes don't fit together")

// Sound, deferred, makes an error of a panic. Passes and rules rely on nodes that are valid ONNX; those of a
// model file needn't be, and ONNX Runtime reports some errors only when it runs it. [Node.Named] adds the
// node to the error.
func Sound(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrUnsound, p)
	}
}

// A misfit is a panic that names the node it's about.
type misfit string

// Named, deferred, adds the node to a panic, unless another node, on whose behalf this one was visited, is
// named already.
func (n Node) Named() {
	switch p := recover().(type) {
	case nil:
	case misfit:
		panic(p)
	default:
		panic(misfit(fmt.Sprintf("node %s: %v", n.Label(), p)))
	}
}
