package onnx

import (
	"errors"
	"fmt"
)

// ErrUnsound is the error into which [Sound] turns a panic.
var ErrUnsound = errors.New("the model's nodes, their shapes and attributes don't fit together")

// Sound, deferred, turns a panic into an error. Passes and rules rely on nodes that are valid ONNX; the
// nodes of a model file may not be, and ONNX Runtime reports some errors only at run time. [Node.Named]
// adds the node to the error.
func Sound(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrUnsound, p)
	}
}

// A misfit is a panic that names its node.
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
