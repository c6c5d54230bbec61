// Package npy reads NumPy's array files: .npz archives (archive.go), .npy stacks row by row (stack.go) and
// single .npy arrays (read.go), whose header (header.go) has the type and shape of an [Array]. Elements are
// numbers, booleans or fixed-width texts, of either byte order and either memory order. Pickled objects are
// refused. [stages.NPYHeader] writes such files.
package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/runexp/runexp/stages"
)

// An Array is a dense array in C order.
type Array struct {
	// DType is NumPy's type code without the byte order: f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1, or U followed
	// by the length of the texts.
	DType string
	Shape []int
	Raw   []byte // the elements, little-endian
}

// Len returns the number of elements.
func (a Array) Len() int {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// Float64s returns the elements as float64, booleans as 0 and 1; nil for texts.
func (a Array) Float64s() []float64 { return numbers[float64](a) }

// Float32s returns the elements as float32; nil for texts.
func (a Array) Float32s() []float32 { return numbers[float32](a) }

// Int64s returns the elements as int64, fractions cut off; nil for texts.
func (a Array) Int64s() []int64 { return numbers[int64](a) }

// Strings returns the elements of an array of texts, and nil for any other.
func (a Array) Strings() []string {
	if !strings.HasPrefix(a.DType, "U") {
		return nil
	}
	width := sizes(a.DType) / 4
	out := make([]string, a.Len())
	for i := range out {
		var s strings.Builder
		for k := range width {
			r := binary.LittleEndian.Uint32(a.Raw[4*(i*width+k):])
			if r == 0 {
				break
			}
			s.WriteRune(rune(r))
		}
		out[i] = s.String()
	}
	return out
}

// Tensor returns a as a tensor of the type that holds all its values: f16 becomes f32, booleans u8, the other
// integers i64. The tensor may share a's memory.
func (a Array) Tensor() (stages.Tensor, error) {
	t := stages.Tensor{Shape: a.Shape, Raw: a.Raw}
	switch a.DType {
	case "f4":
		t.DType = stages.F32
	case "f8":
		t.DType = stages.F64
	case "i8":
		t.DType = stages.I64
	case "u4":
		t.DType = stages.U32
	case "u1", "b1":
		t.DType = stages.U8
	case "f2":
		t = stages.NewTensor(a.Float32s(), a.Shape...)
	case "i1", "i2", "i4", "u2":
		t = stages.NewTensor(a.Int64s(), a.Shape...)
	default:
		return t, fmt.Errorf("an array of type %s is not a tensor", a.DType)
	}
	return t, nil
}

func numbers[T float32 | float64 | int64](a Array) []T {
	size := sizes(a.DType)
	if size == 0 || strings.HasPrefix(a.DType, "U") {
		return nil
	}
	out := make([]T, a.Len())
	for i := range out {
		out[i] = number[T](a.DType, a.Raw[i*size:])
	}
	return out
}

func number[T float32 | float64 | int64](dtype string, b []byte) T {
	switch dtype {
	case "f2":
		return T(half(binary.LittleEndian.Uint16(b)))
	case "f4":
		return T(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case "f8":
		return T(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case "i1":
		return T(int8(b[0]))
	case "i2":
		return T(int16(binary.LittleEndian.Uint16(b)))
	case "i4":
		return T(int32(binary.LittleEndian.Uint32(b)))
	case "i8":
		return T(int64(binary.LittleEndian.Uint64(b)))
	case "u2":
		return T(binary.LittleEndian.Uint16(b))
	case "u4":
		return T(binary.LittleEndian.Uint32(b))
	case "u8":
		return T(binary.LittleEndian.Uint64(b))
	default: // u1, b1
		return T(b[0])
	}
}

// half returns the value of an IEEE 754 binary16.
func half(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	exp, frac := int(h>>10&31), float64(h&1023)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}
