package program

import "github.com/runexp/runexp/stages/internal/onnx"

func (s settling) elu() bool { return s.exponential(1, s.Float("alpha", 1), 1) }

func (s settling) selu() bool {
	gamma := s.Float("gamma", 1.0507009873554805)
	return s.exponential(gamma, gamma*s.Float("alpha", 1.6732632423543772), 1)
}

func (s settling) celu() bool {
	alpha := s.Float("alpha", 1)
	return s.exponential(1, alpha, alpha)
}

// exponential emits gain·max(x, 0) + depth·(exp(min(x, 0)/width) − 1).
func (s settling) exponential(gain, depth, width float32) bool {
	up := s.each("Relu", s.In(0))
	low := s.each("Neg", s.each("Relu", s.each("Neg", s.In(0))))
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

func (s settling) softplus() bool {
	up, rest := s.soft()
	return s.end("Add", up, rest)
}

// mish emits x·tanh(log(1 + eˣ)).
func (s settling) mish() bool {
	up, rest := s.soft()
	return s.end("Mul", s.In(0), s.each("Tanh", s.each("Add", up, rest)))
}

// soft emits the two parts of log(1 + eˣ): max(x, 0) and log(1 + e^−|x|).
func (s settling) soft() (up, rest string) {
	low := s.each("Exp", s.each("Neg", s.each("Abs", s.In(0))))
	return s.each("Relu", s.In(0)), s.each("Reshape", s.logarithms(s.each("Add", low, s.number(1))), s.to(s.shape()))
}

func (s settling) log() bool { return s.end("Reshape", s.logarithms(s.In(0)), s.to(s.shape())) }

// logarithms emits the logarithms of x in a column, as those of sums of one number.
func (s settling) logarithms(x string) string {
	column := []int{size(s.shape()), 1}
	in, attrs := []string{s.op("Reshape", column, x, s.to(column))}, []onnx.Attr(nil)
	if s.g.Opset() < 18 {
		attrs = append(attrs, onnx.Attr{Name: "axes", Value: []int64{1}})
	} else {
		in = append(in, s.f.Ints("axes", []int64{1}, 1))
	}
	v := s.f.Op("ReduceLogSum", in, attrs...)
	s.g.Types[v] = onnx.Type{Elem: s.g.Types[x].Elem, Shape: column}
	return v
}

// aligned emits the node on images each of which is filled up to whole vectors, if they
// aren't.
func (s settling) aligned() bool {
	all := size(s.shape())
	if all%s.batch != 0 || all/s.batch%vector == 0 {
		return false
	}
	count := all / s.batch
	more := vector - count%vector
	rows, filled := []int{s.batch, count}, []int{s.batch, count + more}
	x := s.op("Reshape", rows, s.In(0), s.to(rows))
	fill := s.f.Floats("fill", make([]float32, s.batch*more), int64(s.batch), int64(more))
	x = s.f.Op("Concat", []string{x, fill}, onnx.Attr{Name: "axis", Value: 1})
	s.g.Types[x] = onnx.Type{Elem: s.g.Types[s.In(0)].Elem, Shape: filled}
	x = s.op(s.OpType, filled, x)
	from, to, axis := []int64{0}, []int64{int64(count)}, []int64{1}
	in, attrs := []string{x}, []onnx.Attr{{Name: "starts", Value: from}, {Name: "ends", Value: to}, {Name: "axes", Value: axis}}
	if s.g.Opset() >= 10 {
		in, attrs = []string{x, s.f.Ints("from", from, 1), s.f.Ints("to", to, 1), s.f.Ints("axes", axis, 1)}, nil
	}
	x = s.f.Op("Slice", in, attrs...)
	s.g.Types[x] = onnx.Type{Elem: s.g.Types[s.In(0)].Elem, Shape: rows}
	return s.end("Reshape", x, s.to(s.shape()))
}

// mostChannels is how many an LRN may have to be written with a matrix.
const mostChannels = 1 << 12

// lrn emits x·(bias + α/N·Σ x²)^−β, with the sum over N neighbouring channels as a
// product with a band matrix.
func (s settling) lrn() bool {
	shape := s.shape()
	channels, span := shape[1], s.Int("size", 1)
	if channels > mostChannels {
		return false
	}
	band := make([]float32, channels*channels)
	for to := range channels {
		for from := max(0, to-(span-1)/2); from <= min(channels-1, to+span/2); from++ {
			band[to*channels+from] = 1
		}
	}
	planes := []int{shape[0], channels, size(shape[2:])}
	x := s.op("Reshape", planes, s.each("Mul", s.In(0), s.In(0)), s.to(planes))
	x = s.op("MatMul", planes, s.f.Floats("band", band, int64(channels), int64(channels)), x)
	x = s.each("Mul", s.each("Reshape", x, s.to(shape)), s.number(s.Float("alpha", 1e-4)/float32(span)))
	x = s.each("Add", x, s.number(s.Float("bias", 1)))
	return s.end("Mul", s.In(0), s.each("Pow", x, s.number(-s.Float("beta", 0.75))))
}
