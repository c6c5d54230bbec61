package npy

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages"
)

// maxFile bounds the files that are read whole; a larger stack is read row by row.
const maxFile = 4 << 30

// ReadFile reads the arrays in a file: those of an .npz archive under their
// names, the one of an .npy file under the file's name without extension.
func ReadFile(path string) (map[string]Array, error) {
	b, err := stages.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	arrays, err := Parse(b, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return arrays, nil
}

// Parse reads the arrays in the bytes of an .npz archive, or the one in those of
// an .npy file, which it calls name.
func Parse(b []byte, name string) (map[string]Array, error) {
	if !bytes.HasPrefix(b, []byte("PK")) {
		a, err := Decode(b)
		if err != nil {
			return nil, err
		}
		return map[string]Array{name: a}, nil
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("not an .npz archive: %w", err)
	}
	arrays := make(map[string]Array, len(z.File))
	for _, f := range z.File {
		key, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if _, twice := arrays[key]; twice {
			return nil, fmt.Errorf("the archive has two arrays called %q", key)
		}
		a, err := ReadEntry(f)
		if err != nil {
			return nil, fmt.Errorf("array %q: %w", key, err)
		}
		arrays[key] = a
	}
	return arrays, nil
}

// Decode reads the bytes of an .npy file.
func Decode(b []byte) (Array, error) {
	r := bytes.NewReader(b)
	a, err := Read(r)
	if err == nil && r.Len() > 0 {
		err = fmt.Errorf("%d bytes follow the array", r.Len())
	}
	return a, err
}

// ReadEntry reads the array that an entry of an archive holds, and nothing else.
func ReadEntry(f *zip.File) (a Array, err error) {
	r, err := f.Open()
	if err != nil {
		return a, err
	}
	entry := bufio.NewReader(r)
	if a, err = Read(entry); err == nil {
		// The checksum of an entry is compared only at its end.
		var more int64
		if more, err = io.Copy(io.Discard, io.LimitReader(entry, 1)); more > 0 {
			err = errors.New("more bytes follow the array")
		}
	}
	return a, errors.Join(err, r.Close())
}

// Read reads one array in .npy form and nothing beyond it. It takes memory for
// what is there, not for what a header claims.
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
