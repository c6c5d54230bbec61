package model

import (
	"github.com/runexp/runexp/stages/internal/onnx"
)

// multiplyAdds counts the multiplications of a forward pass that are added up: those of convolutions and
// matrix products, which nearly all of its time goes to. Where a shape isn't known it counts nothing.
func multiplyAdds(g *onnx.Graph) int64 {
	var sum int64
	for _, p := range g.Proto.Graph.Node {
		n := onnx.Node{NodeProto: p}
		if len(n.Output) == 0 {
			continue
		}
		switch n.OpType {
		case "Conv":
			sum += volume(g.Shape(n.Output[0])) * volume(rest(g.Shape(n.In(1)), 1))
		case "ConvTranspose":
			sum += volume(g.Shape(n.In(0))) * volume(rest(g.Shape(n.In(1)), 1))
		case "MatMul":
			a := g.Shape(n.In(0))
			sum += volume(g.Shape(n.Output[0])) * volume(rest(a, len(a)-1))
		case "Gemm":
			inner := 1
			if n.Int("transA", 0) != 0 {
				inner = 0
			}
			if a := g.Shape(n.In(0)); len(a) == 2 {
				sum += volume(g.Shape(n.Output[0])) * int64(a[inner])
			}
		}
	}
	return sum
}

func rest(shape []int, from int) []int {
	if from < 0 || from > len(shape) {
		return nil
	}
	return shape[from:]
}

// volume returns the number of elements of a shape, 0 of an unknown one.
func volume(shape []int) int64 {
	if len(shape) == 0 {
		return 0
	}
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}
