package lower

import "github.com/runexp/runexp/stages/internal/onnx"

// lrn emits x·(bias + α·m)^−β, where m is the mean of x² over N neighbouring channels, those beyond the first
// and the last counted as 0.
func (s invariant) lrn() bool {
	shape, span := s.shape(), s.Int("size", 1)
	planes := []int{shape[0], 1, shape[1], onnx.Size(shape[2:])}
	mean := s.op("AveragePool", planes, []string{s.reshape(s.each("Mul", s.In(0), s.In(0)), planes)},
		onnx.Attr{Name: "kernel_shape", Value: []int64{int64(span), 1}},
		onnx.Attr{Name: "pads", Value: []int64{int64((span - 1) / 2), 0, int64(span / 2), 0}},
		onnx.Attr{Name: "count_include_pad", Value: 1})
	x := s.each("Mul", s.reshape(mean, shape), s.number(s.Float("alpha", 1e-4)))
	x = s.each("Add", x, s.number(s.Float("bias", 1)))
	return s.end("Mul", s.In(0), s.each("Pow", x, s.number(-s.Float("beta", 0.75))))
}
