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

// blocks returns the weights [K,N] of a MatMulNBits.
func (e *edit) blocks(n onnx.Node) ([]float32, error) {
	rows, long, block, bits := n.Int("N", 0), n.Int("K", 0), n.Int("block_size", 0), n.Int("bits", 4)
	if rows < 1 || long < 1 || block < 1 || bits != 2 && bits != 4 && bits != 8 || block*bits%8 != 0 ||
		long > mostPacked/rows || block > mostPacked/rows {
		return nil, fmt.Errorf("%d rows of %d weights in blocks of %d, of %d bits each, aren't known", rows,
			long, block, bits)
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
	blocks := (long-1)/block + 1
	each := 8 / bits // numbers in a byte
	if len(scales) != rows*blocks || len(bytes) != rows*blocks*block/each {
		return nil, fmt.Errorf("%d scales and %d bytes don't make %d rows of %d weights in blocks of %d",
			len(scales), len(bytes), rows, long, block)
	}
	// at returns number i of a row of numbers of this many bits.
	at := func(bytes []int64, i int) float32 {
		return float32(bytes[i/each] >> (i % each * bits) & (1<<bits - 1))
	}
	zero := func(int, int) float32 { return float32(int(1) << (bits - 1)) }
	if n.In(3) != "" {
		t := e.constant(n.In(3))
		if t == nil {
			return nil, fmt.Errorf("%q isn't constant", n.In(3))
		}
		if floats, err := onnx.Float32s(t); err == nil && len(floats) == rows*blocks {
			zero = func(row, b int) float32 { return floats[row*blocks+b] }
		} else {
			width := (blocks*bits + 7) / 8
			zeros, err := small(t)
			if err != nil || len(zeros) != rows*width {
				return nil, fmt.Errorf("its zeros aren't those of %d rows of %d blocks", rows, blocks)
			}
			zero = func(row, b int) float32 { return at(zeros[row*width:], b) }
		}
	}
	w := make([]float32, long*rows)
	for row := range rows {
		for k := range long {
			b := row*blocks + k/block
			w[k*rows+row] = (at(bytes[b*block/each:], k%block) - zero(row, k/block)) * scales[b]
		}
	}
	return w, nil
}
