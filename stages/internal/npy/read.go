package npy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Decode reads the bytes of an .npy file.
func Decode(b []byte) (Array, error) {
	r := bytes.NewReader(b)
	a, err := Read(r)
	if err == nil && r.Len() > 0 {
		err = fmt.Errorf("%d bytes follow the array", r.Len())
	}
	return a, err
}

// Read reads one array in .npy form and nothing beyond it. It allocates memory for the data that is there,
// not for the size that a header claims.
func Read(r io.Reader) (Array, error) {
	h, err := readHeader(r)
	if err != nil {
		return Array{}, err
	}
	var raw bytes.Buffer
	if n, err := io.CopyN(&raw, r, int64(h.bytes)); err != nil {
		if !errors.Is(err, io.EOF) {
			return Array{}, err
		}
		return Array{}, fmt.Errorf("an array of shape %v is cut off: %d of %d bytes", h.shape, n, h.bytes)
	}
	a := Array{DType: h.dtype, Shape: h.shape, Raw: raw.Bytes()}
	size := sizes(h.dtype)
	if h.big {
		word := size
		if strings.HasPrefix(h.dtype, "U") {
			word = 4
		}
		swap(a.Raw, word)
	}
	if h.fortran && len(h.shape) > 1 {
		a.Raw = rowMajor(a.Raw, h.shape, size)
	}
	return a, nil
}

// swap reverses the bytes of each word.
func swap(b []byte, word int) {
	for ; len(b) >= word; b = b[word:] {
		for i, k := 0, word-1; i < k; i, k = i+1, k-1 {
			b[i], b[k] = b[k], b[i]
		}
	}
}

// rowMajor reorders elements from Fortran's order to C's.
func rowMajor(b []byte, shape []int, size int) []byte {
	out := make([]byte, 0, len(b))
	stride := make([]int, len(shape))
	n := 1
	for i, d := range shape {
		stride[i] = n
		n *= d
	}
	index := make([]int, len(shape))
	for range n {
		from := 0
		for i, k := range index {
			from += k * stride[i]
		}
		out = append(out, b[from*size:(from+1)*size]...)
		for i := len(shape) - 1; i >= 0; i-- {
			if index[i]++; index[i] < shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}
