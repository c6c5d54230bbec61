package onnx

import (
	"encoding/binary"
	"math"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// LargestFloat16 is the largest finite number of IEEE 754's 16 bits, SmallestFloat16 the smallest normal one.
const (
	LargestFloat16  = 65504
	SmallestFloat16 = 1.0 / (1 << 14)
)

// ToFloat16 returns the 16 bits that are nearest to a number, of two equally near ones the even: infinity
// from 65520 on.
func ToFloat16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	switch size := math.Abs(float64(x)); {
	case size != size:
		return sign | 0x7e00
	case size >= LargestFloat16+16:
		return sign | 0x7c00
	case size < SmallestFloat16: // subnormal: multiples of 2⁻²⁴, which may round up to a normal one
		return sign | uint16(math.RoundToEven(size*(1<<24)))
	}
	// The exponent's bias is 15 instead of 127; a carry out of the fraction goes to the exponent.
	bits = bits&0x7fffffff - 112<<23
	return sign | uint16((bits+0xfff+bits>>13&1)>>13)
}

// FromFloat16 returns the number that 16 bits stand for in IEEE 754.
func FromFloat16(v uint16) float32 {
	sign := uint32(v>>15) << 31
	exponent := uint32(v>>10) & 31
	fraction := uint32(v) & 1023
	switch exponent {
	case 0: // zero and subnormal numbers, which are normal in float32
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(f))
	case 31: // infinity and NaN
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// Float16Tensor returns a constant of float16 with the numbers nearest to v.
func Float16Tensor(name string, v []float32, shape ...int) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{Name: name, Dims: dims(shape), DataType: int32(onnxpb.TensorProto_FLOAT16),
		RawData: make([]byte, 0, 2*len(v))}
	for _, x := range v {
		t.RawData = binary.LittleEndian.AppendUint16(t.RawData, ToFloat16(x))
	}
	return t
}
