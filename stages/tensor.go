package stages

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A DType is the type of a tensor's elements.
type DType byte

const (
	U8 DType = iota + 1
	U32
	I64
	F32
	F64
)

var dtypes = map[DType]struct {
	name string
	size int
	npy  string
}{
	U8: {"u8", 1, "|u1"}, U32: {"u32", 4, "<u4"}, I64: {"i64", 8, "<i8"}, F32: {"f32", 4, "<f4"},
	F64: {"f64", 8, "<f8"},
}

func (d DType) String() string { return dtypes[d].name }

// Size returns the bytes of one element, 0 for an unknown type.
func (d DType) Size() int { return dtypes[d].size }

// A Tensor is a dense array in C order. Its encoding is one byte for the type, one for the rank, the
// dimensions as little-endian uint32, and the elements, little-endian.
type Tensor struct {
	DType DType
	Shape []int
	Raw   []byte // the elements, little-endian
}

// NewTensor returns a tensor with a copy of the elements v.
func NewTensor[T uint8 | uint32 | int64 | float32 | float64](v []T, shape ...int) Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	if n != len(v) {
		panic(fmt.Sprintf("tensor of shape %v has %d elements, not %d", shape, n, len(v)))
	}
	t := Tensor{Shape: shape}
	switch v := any(v).(type) {
	case []uint8:
		t.DType, t.Raw = U8, append([]byte(nil), v...)
	case []uint32:
		t.DType, t.Raw = U32, make([]byte, 4*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint32(t.Raw[4*i:], x)
		}
	case []int64:
		t.DType, t.Raw = I64, make([]byte, 8*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint64(t.Raw[8*i:], uint64(x))
		}
	case []float32:
		t.DType, t.Raw = F32, make([]byte, 4*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint32(t.Raw[4*i:], math.Float32bits(x))
		}
	case []float64:
		t.DType, t.Raw = F64, make([]byte, 8*len(v))
		for i, x := range v {
			binary.LittleEndian.PutUint64(t.Raw[8*i:], math.Float64bits(x))
		}
	}
	return t
}

// Scalar returns the encoding of a single f64, the payload of a score. All NaNs have the same bytes,
// independent of the processor and operation that produced them.
func Scalar(x float64) []byte {
	if math.IsNaN(x) {
		x = math.NaN()
	}
	return NewTensor([]float64{x}, 1).Encode()
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Encode returns t as a payload.
func (t Tensor) Encode() []byte {
	b := make([]byte, 0, 2+4*len(t.Shape)+len(t.Raw))
	b = append(b, byte(t.DType), byte(len(t.Shape)))
	for _, d := range t.Shape {
		b = binary.LittleEndian.AppendUint32(b, uint32(d))
	}
	return append(b, t.Raw...)
}

// DecodeTensor decodes a payload written by Encode. The result shares its memory.
func DecodeTensor(b []byte) (Tensor, error) {
	if len(b) < 2 {
		return Tensor{}, fmt.Errorf("a tensor of %d bytes is cut off", len(b))
	}
	t := Tensor{DType: DType(b[0]), Shape: make([]int, b[1])}
	if t.DType.Size() == 0 {
		return Tensor{}, fmt.Errorf("a tensor of unknown type %d", b[0])
	}
	b = b[2:]
	if len(b) < 4*len(t.Shape) {
		return Tensor{}, fmt.Errorf("a tensor's shape is cut off")
	}
	want := t.DType.Size()
	for i := range t.Shape {
		t.Shape[i] = int(binary.LittleEndian.Uint32(b[4*i:]))
		if t.Shape[i] > 0 && want > math.MaxInt/t.Shape[i] {
			return Tensor{}, fmt.Errorf("a tensor of shape %v is too large", t.Shape)
		}
		want *= t.Shape[i]
	}
	t.Raw = b[4*len(t.Shape):]
	if len(t.Raw) != want {
		return Tensor{}, fmt.Errorf("a %s tensor of shape %v holds %d bytes, not %d", t.DType, t.Shape,
			len(t.Raw), want)
	}
	return t, nil
}

// Float32s returns the elements converted to float32; u8 isn't scaled.
func (t Tensor) Float32s() []float32 { return convert[float32](t) }

// Float64s returns the elements converted to float64.
func (t Tensor) Float64s() []float64 { return convert[float64](t) }

// Int64s returns the elements converted to int64.
func (t Tensor) Int64s() []int64 { return convert[int64](t) }

// Uint32s returns the elements converted to uint32.
func (t Tensor) Uint32s() []uint32 { return convert[uint32](t) }

// NaN and infinities are the values with all exponent bits set.
const (
	exponent32 = 0xff << 23
	exponent64 = 0x7ff << 52
)

// Undefined returns the number of elements that are NaN or infinite.
func (t Tensor) Undefined() int {
	n := 0
	switch t.DType {
	case F32:
		for b := t.Raw; len(b) >= 4; b = b[4:] {
			if binary.LittleEndian.Uint32(b)&exponent32 == exponent32 {
				n++
			}
		}
	case F64:
		for b := t.Raw; len(b) >= 8; b = b[8:] {
			if binary.LittleEndian.Uint64(b)&exponent64 == exponent64 {
				n++
			}
		}
	}
	return n
}

func convert[T uint32 | int64 | float32 | float64](t Tensor) []T {
	out := make([]T, t.Len())
	switch t.DType {
	case U8:
		for i := range out {
			out[i] = T(t.Raw[i])
		}
	case U32:
		for i := range out {
			out[i] = T(binary.LittleEndian.Uint32(t.Raw[4*i:]))
		}
	case I64:
		for i := range out {
			out[i] = T(int64(binary.LittleEndian.Uint64(t.Raw[8*i:])))
		}
	case F32:
		for i := range out {
			out[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(t.Raw[4*i:])))
		}
	case F64:
		for i := range out {
			out[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(t.Raw[8*i:])))
		}
	}
	return out
}

// ScalarOf decodes a payload that holds a single number, such as a score or a label.
func ScalarOf(b []byte) (float64, error) {
	t, err := DecodeTensor(b)
	if err != nil {
		return 0, err
	}
	if t.Len() != 1 {
		return 0, fmt.Errorf("a tensor of shape %v is not a single number", t.Shape)
	}
	return t.Float64s()[0], nil
}

// NPYHeader returns the header of an array in NumPy's file format, version 1.0. A stack of tensors is
// streamed after it as their Raw bytes, one after another.
func NPYHeader(d DType, shape ...int) []byte {
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = strconv.Itoa(n) + ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtypes[d].npy,
		strings.Join(dims, " "))
	const lead = 10 // bytes: the magic, the version, the text's length
	text += strings.Repeat(" ", 63-(lead+len(text))%64) +
		"\n" // the elements can be mapped from a multiple of 64 bytes
	return append(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(text))), text...)
}
