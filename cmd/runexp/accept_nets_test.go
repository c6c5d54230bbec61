package main

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ONNX files for tests, written field by field: the command's tests see no package of stages/internal.

// A field is one of a protocol buffer: a number and what it holds, an int, a string, bytes or fields.
type field struct {
	n protowire.Number
	v any
}

func message(fields ...field) (b []byte) {
	for _, f := range fields {
		switch v := f.v.(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, f.n, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, f.n, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, f.n, protowire.BytesType), v)
		}
	}
	return b
}

// onnxNode is a node of a graph.
func onnxNode(op string, in []string, out string, attributes ...[]byte) field {
	var f []field
	for _, v := range in {
		f = append(f, field{1, v})
	}
	f = append(f, field{2, out}, field{4, op})
	for _, a := range attributes {
		f = append(f, field{5, a})
	}
	return field{1, message(f...)}
}

// onnxValue describes a float32 input or output; 0 is the batch.
func onnxValue(name string, dims ...int) []byte {
	var shape []field
	for _, d := range dims {
		if d == 0 {
			shape = append(shape, field{1, message(field{2, "N"})})
			continue
		}
		shape = append(shape, field{1, message(field{1, d})})
	}
	tensor := message(field{1, 1}, field{2, message(shape...)})
	return message(field{1, name}, field{2, message(field{1, tensor})})
}

// onnxWeight is a float32 initialiser of a graph.
func onnxWeight(name string, v []float32, dims ...int) field {
	var f []field
	for _, d := range dims {
		f = append(f, field{1, d})
	}
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return field{5, message(append(f, field{2, 1}, field{8, name}, field{9, raw})...)}
}
