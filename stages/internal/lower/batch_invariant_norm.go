package lower

import "github.com/runexp/runexp/stages/internal/onnx"

// instanceNormalization emits the means over positions as products with ones if an image's part of the
// value isn't a multiple of a vector: the kernel adds up a channel from its first address.
func (s invariant) instanceNormalization() bool {
	return onnx.Size(s.shape())/s.batch%vector != 0 && s.meansAsProducts()
}

// meansAsProducts emits the means of InstanceNormalization as products with ones.
func (s invariant) meansAsProducts() bool {
	shape := s.shape()
	if len(shape) < 3 {
		return false
	}
	rows, places := onnx.Size(shape[:2]), onnx.Size(shape[2:])
	all, column := []int{rows, places}, []int{rows, 1}
	mean := func(x string) string {
		sum := s.op("MatMul", column, []string{x, s.ones(places, 1)})
		return s.op("Div", column, []string{sum, s.number(float32(places))})
	}
	x := s.reshape(s.In(0), all)
	centred := s.op("Sub", all, []string{x, mean(x)})
	variance := s.op("Add", column,
		[]string{mean(s.op("Mul", all, []string{centred, centred})), s.number(s.Float("epsilon", 1e-5))})
	normal := s.op("Div", all, []string{centred, s.op("Sqrt", column, []string{variance})})
	channels := make([]int, len(shape)-1)
	for i := range channels {
		channels[i] = 1
	}
	channels[0] = shape[1]
	scaled := s.each("Mul", s.reshape(normal, shape), s.reshape(s.In(1), channels))
	return s.end("Add", scaled, s.reshape(s.In(2), channels))
}

// lrn emits x·(bias + α·m)^−β, where m is the mean of x² over N neighbouring channels; channels beyond the
// first and the last count as 0.
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
