package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// ImageScaler, an experimental operator of ONNX that converters from Core ML wrote, is s·x and a bias for
// each channel. ONNX Runtime supports it up to 9.
var imageScaler = []converter{{"ImageScaler", Oldest, 9, func(e *edit, n onnx.Node) error {
	hint, bias := n.Output[0], n.Floats("bias")
	scaled := e.op(hint, "Mul", []string{n.In(0), e.scalar(hint+"/scale", n.Float("scale", 1))})
	e.to(hint, "Add",
		[]string{scaled, e.weight(onnx.FloatTensor(e.m.Fresh(hint+"/bias"), bias, len(bias), 1, 1))})
	return nil
}}}
