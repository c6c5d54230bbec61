package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"
)

// A graph is an ONNX net in the making: the fields of a GraphProto, written one after the other. Its weights
// are random.
type graph struct {
	fields  message
	rand    *rand.Rand
	values  int  // that have a name
	weights int  // numbers in initializers
	empty   bool // count weights only
}

func newGraph() *graph { return &graph{rand: rand.New(rand.NewPCG(1, 29))} }

// A message is an encoded message of Protocol Buffers. Field numbers are those of onnx.proto.
type message []byte

func (m *message) bytes(field protowire.Number, v []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

func (m *message) text(field protowire.Number, v string) { m.bytes(field, []byte(v)) }

func (m *message) number(field protowire.Number, v int) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

// Types of properties and of tensors' elements.
const (
	propFloat, propInt, propInts = 1, 2, 7
	typeFloat, typeInt64         = 1, 7
)

// A property is a node's attribute: a float32, an int or a list of ints.
type property struct {
	name  string
	value any
}

func (a property) encode() (m message) {
	m.text(1, a.name)
	kind := propInt
	switch v := a.value.(type) {
	case float32:
		m = protowire.AppendFixed32(protowire.AppendTag(m, 2, protowire.Fixed32Type), math.Float32bits(v))
		kind = propFloat
	case int:
		m.number(3, v)
	case []int:
		for _, i := range v {
			m.number(8, i)
		}
		kind = propInts
	default:
		panic(fmt.Sprintf("property %s of type %T", a.name, v))
	}
	m.number(20, kind)
	return m
}

func (g *graph) name(hint string) string {
	g.values++
	return fmt.Sprint(hint, "_", g.values)
}

// node adds a node and returns its output.
func (g *graph) node(op string, inputs []string, attributes ...property) string {
	out := g.name(op)
	var m message
	for _, in := range inputs {
		m.text(1, in)
	}
	m.text(2, out)
	m.text(3, out)
	m.text(4, op)
	for _, a := range attributes {
		m.bytes(5, a.encode())
	}
	g.fields.bytes(1, m)
	return out
}

// tensor adds an initializer, by its little-endian bytes, and returns its name.
func (g *graph) tensor(kind int, raw []byte, dims ...int) string {
	name := g.name("weights")
	var m message
	for _, d := range dims {
		m.number(1, d)
	}
	m.number(2, kind)
	m.text(8, name)
	m.bytes(9, raw)
	g.fields.bytes(5, m)
	return name
}

// filled adds a tensor whose numbers next returns.
func (g *graph) filled(next func() float64, dims ...int) string {
	count := 1
	for _, d := range dims {
		count *= d
	}
	g.weights += count
	if g.empty {
		return g.tensor(typeFloat, nil, dims...)
	}
	raw := make([]byte, 0, 4*count)
	for range count {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(next())))
	}
	return g.tensor(typeFloat, raw, dims...)
}

func (g *graph) constant(v float64, dims ...int) string {
	return g.filled(func() float64 { return v }, dims...)
}

func (g *graph) normal(deviation float64, dims ...int) string {
	return g.filled(func() float64 { return deviation * g.rand.NormFloat64() }, dims...)
}

// ints adds a vector of integers.
func (g *graph) ints(values ...int) string {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return g.tensor(typeInt64, raw, len(values))
}

// scalar adds an integer.
func (g *graph) scalar(v int) string {
	return g.tensor(typeInt64, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// model returns the net from input, f32 [N,3,size,size], to logits, f32 [N,classes].
func (g *graph) model(size int, logits string, classes int) []byte {
	g.fields.bytes(1, func() (m message) { // so that the output has its name
		m.text(1, logits)
		m.text(2, "logits")
		m.text(4, "Identity")
		return m
	}())
	g.fields.text(2, "net")
	g.fields.bytes(11, value("input", 3, size, size))
	g.fields.bytes(12, value("logits", classes))
	var opset, m message
	opset.number(2, 17)
	m.number(1, 8) // the version of the format
	m.bytes(7, g.fields)
	m.bytes(8, opset)
	return m
}

// value describes a float32 value whose first dimension is the batch.
func value(name string, dims ...int) (m message) {
	var shape, batch, tensor, kind message
	batch.text(2, "N")
	shape.bytes(1, batch)
	for _, d := range dims {
		var dim message
		dim.number(1, d)
		shape.bytes(1, dim)
	}
	tensor.number(1, typeFloat)
	tensor.bytes(2, shape)
	kind.bytes(1, tensor)
	m.text(1, name)
	m.bytes(2, kind)
	return m
}
