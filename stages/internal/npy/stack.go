package npy

import (
	"fmt"
	"io"
	"os"

	"github.com/runexp/runexp/stages"
)

// A Stack is an .npy file whose rows, the slices along its first axis, are read one at a time.
type Stack struct {
	// Shape is the shape of the whole array.
	Shape []int

	file   *os.File
	header header
	offset int64 // of the first element
}

// OpenStack opens the .npy file at path. It reads only the header, and checks that the file has the length
// that the header implies.
func OpenStack(path string) (*Stack, error) {
	f, err := stages.OpenFile(path)
	if err != nil {
		return nil, err
	}
	s := &Stack{file: f}
	if err := s.open(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s *Stack) open() error {
	h, err := readHeader(s.file)
	if err != nil {
		return err
	}
	switch {
	case len(h.shape) == 0:
		return fmt.Errorf("a single number is not a stack of arrays")
	case h.fortran && len(h.shape) > 1:
		return fmt.Errorf("the stack is in Fortran order, in which its arrays don't lie together")
	}
	s.Shape, s.header = h.shape, h
	if s.offset, err = s.file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if n := info.Size() - s.offset; n != int64(h.bytes) {
		return fmt.Errorf("an array of shape %v has %d bytes, the file holds %d", h.shape, h.bytes, n)
	}
	return nil
}

// Len returns the number of rows.
func (s *Stack) Len() int { return s.Shape[0] }

// Row reads the row i, 0 ≤ i < Len.
func (s *Stack) Row(i int) (Array, error) {
	if i < 0 || i >= s.Len() {
		return Array{}, fmt.Errorf("row %d of a stack of %d", i, s.Len())
	}
	n := s.header.bytes / s.Len()
	raw := make([]byte, n)
	if _, err := s.file.ReadAt(raw, s.offset+int64(i)*int64(n)); err != nil {
		return Array{}, err
	}
	if s.header.big {
		size := sizes(s.header.dtype)
		if s.header.dtype[0] == 'U' {
			size = 4
		}
		swap(raw, size)
	}
	return Array{DType: s.header.dtype, Shape: s.Shape[1:], Raw: raw}, nil
}

// Close closes the file.
func (s *Stack) Close() error { return s.file.Close() }
