package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Col2Im was introduced in opset 18: it adds up the blocks of an image, each a column, at the places from
// which they were cut. That is a ConvTranspose whose weights, with a channel for each place in a block, are
// 1 at that place.
var col2Im = []converter{{"Col2Im", 18, Newest, func(e *edit, n onnx.Node) error {
	shape, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	image, err := e.known(n.In(1))
	if err != nil {
		return err
	}
	block, err := e.known(n.In(2))
	if err != nil {
		return err
	}
	if len(shape) != 3 || len(image) != 2 || len(block) != 2 {
		return fmt.Errorf("only images are supported, of two axes")
	}
	if !onnx.Possible(image) || !onnx.Possible(block) {
		return fmt.Errorf("blocks of %v can't be cut out of an image of %v", block, image)
	}
	places := max(block[0], 1) * max(block[1], 1)
	stated := func(name string, count, unstated int) []int {
		v := n.Ints(name)
		for len(v) < count {
			v = append(v, unstated)
		}
		return v
	}
	strides, dilations, pads := stated("strides", 2, 1), stated("dilations", 2, 1), stated("pads", 4, 0)
	var blocks, more [2]int // the number of blocks, and the pixels that the last ones leave uncovered
	for i, size := range image {
		room := size + pads[i] + pads[i+2] - dilations[i]*(block[i]-1) - 1
		if block[i] < 1 || strides[i] < 1 || dilations[i] < 1 || room < 0 {
			return fmt.Errorf("blocks of %v can't be cut out of an image of %v", block, image)
		}
		blocks[i], more[i] = room/strides[i]+1, room%strides[i]
	}
	channels := shape[1] / places
	if shape[1] != channels*places || shape[2] != blocks[0]*blocks[1] {
		return fmt.Errorf("%v blocks of %v of an image of %v don't make columns of the shape %v", blocks,
			block, image, shape)
	}
	v, err := e.matrix(shape[1], places)
	if err != nil {
		return err
	}
	for i := range shape[1] {
		v[i*places+i%places] = 1
	}
	weights := e.weight(onnx.FloatTensor(e.m.Fresh(n.Output[0]+"/places"), v, shape[1], 1, block[0],
		block[1]))
	list := func(name string, v ...int) onnx.Attr { return onnx.Attr{Name: name, Value: long(v)} }
	e.to(n.Output[0], "ConvTranspose",
		[]string{e.reshape(n.Output[0], n.In(0), shape[0], shape[1], blocks[0], blocks[1]), weights},
		onnx.Attr{Name: "group", Value: channels}, list("kernel_shape", block...), list("strides",
			strides...),
		list("dilations", dilations...), list("pads", pads...), list("output_padding", more[:]...))
	return nil
}}}
