package lower

import "github.com/runexp/runexp/stages/internal/onnx"

func (s invariant) elu() bool { return s.exponential(1, s.Float("alpha", 1), 1) }

func (s invariant) selu() bool {
	gamma := s.Float("gamma", 1.0507009873554805)
	return s.exponential(gamma, gamma*s.Float("alpha", 1.6732632423543772), 1)
}

func (s invariant) celu() bool {
	alpha := s.Float("alpha", 1)
	return s.exponential(1, alpha, alpha)
}

// exponential emits gain·max(x, 0) + depth·(exp(min(x, 0)/width) − 1).
func (s invariant) exponential(gain, depth, width float32) bool {
	up, low := s.each("Relu", s.In(0)), s.each("Min", s.In(0), s.number(0))
	if width != 1 {
		low = s.each("Div", low, s.number(width))
	}
	low = s.each("Sub", s.each("Exp", low), s.number(1))
	if depth != 1 {
		low = s.each("Mul", low, s.number(depth))
	}
	if gain != 1 {
		up = s.each("Mul", up, s.number(gain))
	}
	return s.end("Add", up, low)
}

// softplus emits max(x, 0) + log(1 + u), u = e^−|x|. For small u, w = 1 + u is rounded, and w − 1 is
// the u that it contains: log(1 + u) is u·log(w)/(w − 1), and u if w is 1.
func (s invariant) softplus() bool {
	u := s.each("Exp", s.each("Neg", s.each("Abs", s.In(0))))
	w := s.each("Add", u, s.number(1))
	tiny := s.number(1e-30) // turns 0/0 into 1, and changes nothing else
	log := s.each("Add", s.reshape(s.logarithms(w), s.shape()), tiny)
	rounded := s.each("Add", s.each("Sub", w, s.number(1)), tiny)
	return s.end("Add", s.each("Relu", s.In(0)), s.each("Mul", u, s.each("Div", log, rounded)))
}

func (s invariant) log() bool { return s.end("Reshape", s.logarithms(s.In(0)), s.to(s.shape())) }

// logarithms emits the logarithms of x in a column, as logarithms of sums of one number.
func (s invariant) logarithms(x string) string {
	column := []int{onnx.Size(s.shape()), 1}
	return s.op("ReduceLogSum", column, []string{s.reshape(x, column)},
		onnx.Attr{Name: "axes", Value: []int64{1}})
}

// aligned emits the node on images that are padded to whole vectors, unless they are already aligned.
func (s invariant) aligned() bool {
	all := onnx.Size(s.shape())
	if all%s.batch != 0 || all/s.batch%vector == 0 {
		return false
	}
	count := all / s.batch
	more := vector - count%vector
	rows, filled := []int{s.batch, count}, []int{s.batch, count + more}
	fill := s.f.Floats("fill", make([]float32, s.batch*more), int64(s.batch), int64(more))
	x := s.op("Concat", filled, []string{s.reshape(s.In(0), rows), fill}, onnx.Attr{Name: "axis", Value: 1})
	x = s.op(s.OpType, filled, []string{x})
	x = s.op("Slice", rows,
		[]string{x, s.f.Ints("from", []int64{0}, 1), s.to([]int{count}), s.f.Ints("axes", []int64{1}, 1)})
	return s.end("Reshape", x, s.to(s.shape()))
}
