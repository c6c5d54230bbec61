package ort

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/gpu"
)

// A message is a request to a [worker], or its reply. It travels as its length, itself in JSON, and then the
// bytes of blobs as they are.
type message struct {
	ID       uint64
	Do       string         `json:",omitempty"` // what a request is for
	Session  int            `json:",omitempty"`
	Library  string         `json:",omitempty"` // a file, or a folder that has it
	Inputs   []string       `json:",omitempty"`
	Outputs  []string       `json:",omitempty"`
	Disabled []string       `json:",omitempty"` // optimisers
	Plain    bool           `json:",omitempty"` // nothing is optimised
	Device   *stages.Device `json:",omitempty"`
	Class    string         `json:",omitempty"` // of devices
	Limits   *Limits        `json:",omitempty"`
	Profiled bool           `json:",omitempty"` // the session records, or is to tell what it recorded
	Profile  *Profile       `json:",omitempty"`
	Alone    bool           `json:",omitempty"` // the session refuses what its device can't compute
	Arrays   []array        `json:",omitempty"`
	Infos    []Info         `json:",omitempty"`
	Adapters []gpu.Adapter  `json:",omitempty"`
	Missing  gpu.Missing    `json:",omitempty"`

	Resident int64  `json:",omitempty"` // bytes of memory that the worker takes
	Error    string `json:",omitempty"`
	Memory   bool   `json:",omitempty"` // the error is a lack of memory
	Lost     bool   `json:",omitempty"` // the error is the loss of a device
	Sizes    []int  `json:",omitempty"` // of blobs

	NoDevice *NoDevice `json:",omitempty"` // the error is this one

	blobs [][]byte
}

// An array is what a message says of a tensor. Its numbers are a blob, but for an output whose shape the
// caller knows.
type array struct {
	Shape []int
	Of    string // the Go type of its numbers
}

// largestHead bounds what a message says of its blobs.
const largestHead = 1 << 26

func (m *message) write(w io.Writer) error {
	m.Sizes = nil
	for _, b := range m.blobs {
		m.Sizes = append(m.Sizes, len(b))
	}
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(head)))); err != nil {
		return err
	}
	for _, b := range append([][]byte{head}, m.blobs...) {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func readMessage(r *bufio.Reader) (*message, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > largestHead {
		return nil, errors.New("this is no message")
	}
	head := make([]byte, size)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	m := &message{}
	if err := json.Unmarshal(head, m); err != nil {
		return nil, err
	}
	for _, size := range m.Sizes {
		b := make([]byte, size)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		m.blobs = append(m.blobs, b)
	}
	return m, nil
}

// fail makes m a reply about an error.
func (m *message) fail(err error) {
	m.Error, m.Memory = err.Error(), errors.Is(err, stages.ErrOutOfMemory)
	errors.As(err, &m.NoDevice)
	m.Lost = errors.Is(err, stages.ErrDeviceLost)
}

// failure returns the error of a reply, nil if it has none.
func (m *message) failure() error {
	switch {
	case m.Error == "":
		return nil
	case m.NoDevice != nil:
		return m.NoDevice
	case m.Memory:
		return &remoteError{m.Error, stages.ErrOutOfMemory}
	case m.Lost:
		return &remoteError{m.Error, stages.ErrDeviceLost}
	}
	return errors.New(m.Error)
}

// A remoteError is an error of a worker that wraps one which callers look for.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// bytesOf returns the memory of numbers.
func bytesOf[T Element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// numbersOf returns a copy of numbers that travelled as bytes.
func numbersOf[T Element](b []byte) []T {
	v := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
	copy(bytesOf(v), b)
	return v
}

// typeName returns the name of the numbers' Go type.
func typeName[T Element]() string { return fmt.Sprintf("%T", *new(T)) }
