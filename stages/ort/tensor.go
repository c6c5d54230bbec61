package ort

import (
	"bytes"
	"fmt"
	"unsafe"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/runexp/runexp/stages"
)

// A Value is an input or output of a session: a [Tensor].
type Value interface {
	value() onnxruntime.Value
	// array returns the tensor's shape and its memory.
	array() (array, []byte)
	// written returns how often the tensor was written; a session that fills it passes fill.
	written() uint64
	fill()
	// Close releases the library's memory.
	Close() error
}

// An Element is the type of a tensor's elements.
type Element interface {
	float32 | float64 | int64 | int32 | uint16 | uint8
}

// A Tensor is memory that a session reads or writes. It is meant to be filled and used again and again.
type Tensor[T Element] struct {
	Data  []T // in C order; only [Tensor.Write] and [Tensor.Set] may change it
	t     *onnxruntime.Tensor[T]
	write uint64
}

// Write returns the elements, for the caller to change before the next run of a session that reads them;
// that run uploads them again.
func (t *Tensor[T]) Write() []T {
	t.write++
	return t.Data
}

// Set copies elements into t, unless t has the same bits.
func (t *Tensor[T]) Set(elements []T) {
	if !bytes.Equal(bytesOf(t.Data[:len(elements)]), bytesOf(elements)) {
		copy(t.Write(), elements)
	}
}

// alignment is the library's own. The start of an array decides in which order some kernels add numbers.
const alignment = 64

// largest is how many elements a tensor may have.
const largest = 1 << 31

// NewTensor returns a tensor of zeros. The runtime proves that the library is open. If memory runs out, the
// error wraps [stages.ErrOutOfMemory].
func NewTensor[T Element](_ *Runtime, shape ...int) (*Tensor[T], error) {
	n := 1
	dims := make(onnxruntime.Shape, len(shape))
	for i, d := range shape {
		if d <= 0 {
			return nil, fmt.Errorf("a tensor of shape %v is empty", shape)
		}
		if d > largest/n {
			return nil, fmt.Errorf("%w: a tensor of shape %v", stages.ErrOutOfMemory, shape)
		}
		dims[i], n = int64(d), n*d
	}
	t, err := onnxruntime.NewTensor(dims, aligned[T](n))
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{Data: t.GetData(), t: t, write: 1}, nil
}

func aligned[T Element](n int) []T {
	var x T
	size := int(unsafe.Sizeof(x))
	b := make([]T, n+alignment/size)
	skip := 0
	if over := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment); over > 0 {
		skip = (alignment - over) / size
	}
	return b[skip : skip+n]
}

// Shape returns the tensor's shape.
func (t *Tensor[T]) Shape() []int { return shapeOf(t.t.GetShape()) }

func (t *Tensor[T]) written() uint64 { return t.write }

func (t *Tensor[T]) fill() { t.write++ }

func (t *Tensor[T]) value() onnxruntime.Value { return t.t }

func (t *Tensor[T]) array() (array, []byte) {
	return array{t.Shape(), typeName[T]()}, bytesOf(t.Data)
}

// Close releases the library's memory; Data must not be used any more.
func (t *Tensor[T]) Close() error {
	t.Data = nil
	return t.t.Destroy()
}

func values(v []Value) []onnxruntime.Value {
	out := make([]onnxruntime.Value, len(v))
	for i := range v {
		out[i] = v[i].value()
	}
	return out
}
