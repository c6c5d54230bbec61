package onnx

import (
	"errors"
	"fmt"
)

// ErrUnsound is what [Sound] makes of a panic.
var ErrUnsound = errors.New("the model's nodes, their shapes and attributes don't fit together")

// Sound, deferred, makes an error of a panic. Whoever looks at a graph relies on nodes that are as ONNX says;
// a model file needn't have them, and ONNX Runtime sees some of that only when it runs it. Where nodes are
// looked at one by one, [Node.Named] says which it was.
func Sound(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrUnsound, p)
	}
}

// A misfit is a panic that names the node it's about.
type misfit string

// Named, deferred, has a panic name the node that it's about, unless another node, which was looked at for
// the sake of this one, is named already.
func (n Node) Named() {
	switch p := recover().(type) {
	case nil:
	case misfit:
		panic(p)
	default:
		panic(misfit(fmt.Sprintf("node %s: %v", n.Label(), p)))
	}
}
