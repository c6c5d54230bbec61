package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Encode returns t as the bytes of an .npy file.
func Encode(t stages.Tensor) []byte {
	var b bytes.Buffer
	_ = WriteHeader(&b, t.DType, t.Shape...) // a Buffer takes everything
	b.Write(t.Raw)
	return b.Bytes()
}

// WriteHeader writes what stands before the elements of an array of the given
// type and shape. Whoever streams a stack of tensors writes their Raw bytes next.
func WriteHeader(w io.Writer, dtype stages.DType, shape ...int) error {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	list := strings.Join(dims, ", ")
	if len(shape) == 1 {
		list += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype.NPY(), list)
	// The elements start at a multiple of 64 bytes, so that they can be mapped.
	const lead = len(magic) + 2 + 2
	text += strings.Repeat(" ", 63-(lead+len(text))%64) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	_, err := w.Write(append(b, text...))
	return err
}
