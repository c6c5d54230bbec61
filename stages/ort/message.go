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

// A message is a request to a [worker], or the reply. It is sent as its length, the message in JSON, and
// then the bytes of its blobs.
type message struct {
	ID       uint64
	Do       string         `json:",omitempty"` // the kind of request
	Session  int            `json:",omitempty"`
	Library  string         `json:",omitempty"` // a file, or the folder that contains it
	Inputs   []string       `json:",omitempty"`
	Outputs  []string       `json:",omitempty"`
	Disabled []string       `json:",omitempty"` // fusions
	Plain    bool           `json:",omitempty"` // without optimisation
	Device   *stages.Device `json:",omitempty"`
	Class    string         `json:",omitempty"` // of the device
	Limits   *Limits        `json:",omitempty"`
	Profiled bool           `json:",omitempty"` // the session records a profile, or is asked for it
	Profile  *Profile       `json:",omitempty"`
	Alone    bool           `json:",omitempty"` // the session fails if its device can't compute all
	Arrays   []array        `json:",omitempty"`
	Infos    []Info         `json:",omitempty"`
	Adapters []gpu.Adapter  `json:",omitempty"`
	Missing  gpu.Missing    `json:",omitempty"`

	Resident int64  `json:",omitempty"` // bytes of memory that the worker takes
	Error    string `json:",omitempty"`
	Memory   bool   `json:",omitempty"` // the error is [stages.ErrOutOfMemory]
	Lost     bool   `json:",omitempty"` // the device is lost
	Sizes    []int  `json:",omitempty"` // bytes of each blob

	NoDevice *NoDevice `json:",omitempty"` // the error itself, if it is of this type

	blobs [][]byte
}

// An array describes a tensor in a message. Its elements are a blob, except for an output whose shape the
// caller already knows.
type array struct {
	Shape []int
	Of    string // the Go type of the elements
}

// largestHead bounds the JSON part of a message.
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

// fail makes m the reply that reports err.
func (m *message) fail(err error) {
	m.Error, m.Memory = err.Error(), errors.Is(err, stages.ErrOutOfMemory)
	errors.As(err, &m.NoDevice)
	m.Lost = errors.Is(err, stages.ErrDeviceLost)
}

// failure returns the error that a reply reports, or nil.
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

// A remoteError is an error of a worker that wraps one of the errors for which callers test.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// bytesOf returns the memory of the elements of v.
func bytesOf[T Element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// numbersOf returns a copy of the elements that were sent as b.
func numbersOf[T Element](b []byte) []T {
	v := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
	copy(bytesOf(v), b)
	return v
}

// typeName returns the name of T.
func typeName[T Element]() string { return fmt.Sprintf("%T", *new(T)) }
