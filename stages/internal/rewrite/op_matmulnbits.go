package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// MatMulNBits is ONNX Runtime's product with weights of a few bits: a row of B has the K weights of an
// output, in blocks with a scale each, and a zero, 2^(bits−1) by default. The weights are replaced by the
// floats (b − zero)·scale.
var matMulNBits = []converter{{"com.microsoft.MatMulNBits", Oldest, Newest, func(e *edit, n onnx.Node) error {
	w, err := e.blocks(n)
	if err != nil {
		return err
	}
	hint := n.Output[0]
	weights := e.weight(onnx.FloatTensor(e.m.Fresh(hint+"/weights"), w, n.Int("K", 0), n.Int("N", 0)))
	if n.In(5) == "" {
		e.to(hint, "MatMul", []string{n.In(0), weights})
		return nil
	}
	e.to(hint, "Add", []string{e.op(hint, "MatMul", []string{n.In(0), weights}), n.In(5)})
	return nil
}}}

// mostPacked keeps the counts of weights within integers.
const mostPacked = 1 << 34

// An nbits is the shape of the weights of a MatMulNBits.
type nbits struct {
	rows, long  int // rows of so many weights each
	block, bits int // weights in a block, and bits of a weight
}

// blocks returns the weights [K,N] of a MatMulNBits.
func (e *edit) blocks(n onnx.Node) ([]float32, error) {
	s := nbits{n.Int("N", 0), n.Int("K", 0), n.Int("block_size", 0), n.Int("bits", 4)}
	if !s.known() {
		return nil, fmt.Errorf("%d rows of %d weights in blocks of %d, of %d bits each, aren't known", s.rows,
			s.long, s.block, s.bits)
	}
	if n.In(4) != "" || n.Int("weight_prepacked", 0) != 0 {
		return nil, fmt.Errorf("its weights are in an order of their own")
	}
	packed, scale := e.constant(n.In(1)), e.constant(n.In(2))
	if packed == nil || scale == nil {
		return nil, fmt.Errorf("its weights or their scales aren't constant")
	}
	scales, err := onnx.Float32s(scale)
	if err != nil {
		return nil, err
	}
	bytes, err := small(packed)
	if err != nil {
		return nil, err
	}
	if len(scales) != s.rows*s.blocks() || len(bytes) != s.rows*s.blocks()*s.bytes() {
		return nil, fmt.Errorf("%d scales and %d bytes don't make %d rows of %d weights in blocks of %d",
			len(scales), len(bytes), s.rows, s.long, s.block)
	}
	zero, err := e.zeroPoints(n.In(3), s)
	if err != nil {
		return nil, err
	}
	w := make([]float32, s.long*s.rows)
	blocks, size := s.blocks(), s.bytes()
	for row := range s.rows {
		for k := range s.long {
			b := row*blocks + k/s.block
			w[k*s.rows+row] = (s.at(bytes[b*size:], k%s.block) - zero(row, k/s.block)) * scales[b]
		}
	}
	return w, nil
}

// known reports whether the weights have a shape that this package reads, and their count fits in an int.
func (s nbits) known() bool {
	return s.rows >= 1 && s.long >= 1 && s.block >= 1 && (s.bits == 2 || s.bits == 4 || s.bits == 8) &&
		s.block*s.bits%8 == 0 && s.long <= mostPacked/s.rows && s.block <= mostPacked/s.rows
}

func (s nbits) blocks() int { return (s.long-1)/s.block + 1 } // of a row
func (s nbits) bytes() int  { return s.block * s.bits / 8 }   // of a block

// at returns number i of those packed into bytes.
func (s nbits) at(bytes []int64, i int) float32 {
	each := 8 / s.bits // numbers in a byte
	return float32(bytes[i/each] >> (i % each * s.bits) & (1<<s.bits - 1))
}

// zeroPoints returns a function of the zero of a row's block: a float for each, or packed as weights are.
func (e *edit) zeroPoints(name string, s nbits) (func(row, block int) float32, error) {
	if name == "" {
		middle := float32(int(1) << (s.bits - 1))
		return func(int, int) float32 { return middle }, nil
	}
	t := e.constant(name)
	if t == nil {
		return nil, fmt.Errorf("%q isn't constant", name)
	}
	if floats, err := onnx.Float32s(t); err == nil && len(floats) == s.rows*s.blocks() {
		return func(row, block int) float32 { return floats[row*s.blocks()+block] }, nil
	}
	width := (s.blocks()*s.bits + 7) / 8
	zeros, err := small(t)
	if err != nil || len(zeros) != s.rows*width {
		return nil, fmt.Errorf("its zeros don't fit %d rows of %d blocks", s.rows, s.blocks())
	}
	return func(row, block int) float32 { return s.at(zeros[row*width:], block) }, nil
}
