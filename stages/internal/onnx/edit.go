package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Fresh returns a name for a value that the model doesn't have yet: hint, or hint and a number.
func (m *Model) Fresh(hint string) string {
	if m.names == nil {
		m.names = map[string]int{}
		m.collect(m.Proto.Graph)
	}
	name := hint
	for m.taken(name) {
		m.names[hint]++
		name = fmt.Sprintf("%s_%d", hint, m.names[hint])
	}
	m.names[name] = 0
	return name
}

func (m *Model) taken(name string) bool {
	_, ok := m.names[name]
	return ok
}

// collect records the names in g and in the graphs inside its nodes.
func (m *Model) collect(g *onnxpb.GraphProto) {
	for _, v := range slices.Concat(g.Input, g.Output, g.ValueInfo) {
		m.names[v.Name] = 0
	}
	for _, t := range g.Initializer {
		m.names[t.Name] = 0
	}
	for _, n := range g.Node {
		for _, name := range n.Output {
			m.names[name] = 0
		}
		for _, body := range Bodies(n) {
			m.collect(body)
		}
	}
}

// SetInputs replaces the inputs that must be fed. A node has to make each value that was fed before.
// Weights among the inputs become constants, as IR versions from 4 on treat weights that aren't inputs.
func (m *Model) SetInputs(values ...Value) {
	m.Proto.IrVersion = max(m.Proto.IrVersion, 4)
	m.Proto.Graph.Input = nil
	for _, v := range values {
		m.Proto.Graph.Input = append(m.Proto.Graph.Input, v.proto())
	}
}

// SetOutputs replaces the outputs. Descriptions of an inner value that becomes an output are dropped.
func (m *Model) SetOutputs(values ...Value) {
	g := m.Proto.Graph
	g.Output = nil
	for _, v := range values {
		g.Output = append(g.Output, v.proto())
		g.ValueInfo = slices.DeleteFunc(g.ValueInfo,
			func(i *onnxpb.ValueInfoProto) bool { return i.Name == v.Name })
	}
}

// Import records that the model has operators of a domain other than ONNX's own.
func (m *Model) Import(domain string, version int) {
	for _, o := range m.Proto.OpsetImport {
		if o.Domain == domain {
			return
		}
	}
	m.Proto.OpsetImport = append(slices.Clone(m.Proto.OpsetImport),
		&onnxpb.OperatorSetIdProto{Domain: domain, Version: int64(version)})
}

// ForgetShapes drops the model's descriptions of its inner values, which aren't valid for another size of
// its input.
func (m *Model) ForgetShapes() { m.Proto.Graph.ValueInfo = nil }

// A Fragment is a sequence of new nodes of a model.
type Fragment struct {
	m     *Model
	nodes []*onnxpb.NodeProto
}

// Fragment returns an empty sequence of nodes.
func (m *Model) Fragment() *Fragment { return &Fragment{m: m} }

// Before puts the nodes of f before those of the model.
func (m *Model) Before(f *Fragment) {
	m.Proto.Graph.Node = append(f.nodes, m.Proto.Graph.Node...)
}

// After puts the nodes of f after those of the model.
func (m *Model) After(f *Fragment) {
	m.Proto.Graph.Node = append(m.Proto.Graph.Node, f.nodes...)
}

// An Attr is an attribute of a node: an int, float32, string or []int64.
type Attr struct {
	Name  string
	Value any
}

// Op adds a node with one output and returns the output's name.
func (f *Fragment) Op(op string, in []string, attrs ...Attr) string {
	out := f.m.Fresh("runexp_" + op)
	f.OpTo(out, op, in, attrs...)
	return out
}

// OpTo adds a node whose output is called out.
func (f *Fragment) OpTo(out, op string, in []string, attrs ...Attr) {
	n := &onnxpb.NodeProto{OpType: op, Name: out, Input: in, Output: []string{out}}
	for _, a := range attrs {
		n.Attribute = append(n.Attribute, a.proto())
	}
	f.nodes = append(f.nodes, n)
}

// Copy adds a copy of a node with other inputs.
func (f *Fragment) Copy(n *onnxpb.NodeProto, in []string) {
	n = proto.CloneOf(n)
	n.Input = in
	f.nodes = append(f.nodes, n)
}

// Floats adds a weight and returns its name.
func (f *Fragment) Floats(hint string, v []float32, shape ...int64) string {
	t := &onnxpb.TensorProto{Name: f.m.Fresh("runexp_" + hint), Dims: shape,
		DataType: int32(onnxpb.TensorProto_FLOAT), RawData: []byte{}}
	for _, x := range v {
		t.RawData = binary.LittleEndian.AppendUint32(t.RawData, math.Float32bits(x))
	}
	f.m.Proto.Graph.Initializer = append(f.m.Proto.Graph.Initializer, t)
	return t.Name
}

// Doubles adds a weight in double precision and returns its name.
func (f *Fragment) Doubles(hint string, v []float64, shape ...int64) string {
	t := &onnxpb.TensorProto{Name: f.m.Fresh("runexp_" + hint), Dims: shape,
		DataType: int32(onnxpb.TensorProto_DOUBLE), RawData: []byte{}}
	for _, x := range v {
		t.RawData = binary.LittleEndian.AppendUint64(t.RawData, math.Float64bits(x))
	}
	f.m.Proto.Graph.Initializer = append(f.m.Proto.Graph.Initializer, t)
	return t.Name
}

// Ints adds a weight of integers and returns its name.
func (f *Fragment) Ints(hint string, v []int64, shape ...int64) string {
	t := &onnxpb.TensorProto{Name: f.m.Fresh("runexp_" + hint), Dims: shape,
		DataType: int32(onnxpb.TensorProto_INT64), RawData: []byte{}}
	for _, x := range v {
		t.RawData = binary.LittleEndian.AppendUint64(t.RawData, uint64(x))
	}
	f.m.Proto.Graph.Initializer = append(f.m.Proto.Graph.Initializer, t)
	return t.Name
}

func (a Attr) proto() *onnxpb.AttributeProto {
	p := &onnxpb.AttributeProto{Name: a.Name}
	switch v := a.Value.(type) {
	case int:
		i := int64(v)
		p.Type, p.I = onnxpb.AttributeProto_INT, &i
	case float32:
		p.Type, p.F = onnxpb.AttributeProto_FLOAT, &v
	case string:
		p.Type, p.S = onnxpb.AttributeProto_STRING, []byte(v)
	case []int64:
		p.Type, p.Ints = onnxpb.AttributeProto_INTS, v
	default:
		panic(fmt.Sprintf("attribute %s of the unsupported type %T", a.Name, v))
	}
	return p
}

// Rename renames weights; names maps old names to new ones.
func (m *Model) Rename(names map[string]string) {
	if len(names) == 0 {
		return
	}
	for _, n := range m.Proto.Graph.Node {
		Retake(n, names)
	}
	for _, t := range m.Proto.Graph.Initializer {
		name, ok := names[t.Name]
		if !ok {
			continue
		}
		if s, ok := m.Computed[t.Name]; ok {
			delete(m.Computed, t.Name)
			m.Computed[name] = s
		}
		t.Name = name
	}
}

// Renamed returns a weight of another name that shares the numbers of t.
func Renamed(t *onnxpb.TensorProto, name string) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: name, Dims: t.Dims, DataType: t.DataType, RawData: t.RawData,
		FloatData: t.FloatData, Int32Data: t.Int32Data, Int64Data: t.Int64Data, DoubleData: t.DoubleData,
		Uint64Data: t.Uint64Data}
}

// Prune removes the nodes and weights that no output needs.
func (m *Model) Prune() {
	g := m.Proto.Graph
	needed := map[string]bool{}
	for _, v := range g.Output {
		needed[v.Name] = true
	}
	kept := make([]*onnxpb.NodeProto, 0, len(g.Node))
	for _, n := range slices.Backward(g.Node) { // a model's nodes are sorted: producers first
		if slices.ContainsFunc(n.Output, func(name string) bool { return needed[name] }) {
			kept = append(kept, n)
			for _, v := range Taken(n) {
				needed[v] = true
			}
		}
	}
	slices.Reverse(kept)
	g.Node = kept
	g.Initializer = slices.DeleteFunc(g.Initializer,
		func(t *onnxpb.TensorProto) bool { return !needed[t.Name] })
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo,
		func(v *onnxpb.ValueInfoProto) bool { return !needed[v.Name] })
}

// Bodies returns the graphs inside a node: the branches of an If, the body of a Loop.
func Bodies(n *onnxpb.NodeProto) []*onnxpb.GraphProto {
	var out []*onnxpb.GraphProto
	for _, a := range n.Attribute {
		out = append(out, a.Graphs...)
		if a.G != nil {
			out = append(out, a.G)
		}
	}
	return out
}

// Taken returns the values that a node reads, including those that the graphs inside it read from outside.
func Taken(n *onnxpb.NodeProto) []string {
	out := make([]string, 0, len(n.Input))
	visit(n, func(v string) string {
		out = append(out, v)
		return v
	})
	return out
}

// Retake makes a node, and the graphs inside it, read other values; instead maps old names to new ones.
func Retake(n *onnxpb.NodeProto, instead map[string]string) {
	visit(n, func(v string) string {
		if other, ok := instead[v]; ok {
			return other
		}
		return v
	})
}

// visit renames the values that a node reads by the function name.
func visit(n *onnxpb.NodeProto, name func(v string) string) {
	one := func(v *string) {
		if *v == "" {
			return
		}
		if other := name(*v); other != *v {
			*v = other
		}
	}
	for i := range n.Input {
		one(&n.Input[i])
	}
	for _, g := range Bodies(n) {
		inside := map[string]bool{}
		for _, v := range g.Input {
			inside[v.Name] = true
		}
		for _, t := range g.Initializer {
			inside[t.Name] = true
		}
		for _, inner := range g.Node {
			for _, v := range inner.Output {
				inside[v] = true
			}
		}
		outside := func(v string) string {
			if inside[v] {
				return v
			}
			return name(v)
		}
		for _, inner := range g.Node {
			visit(inner, outside)
		}
		for _, v := range g.Output {
			if !inside[v.Name] {
				one(&v.Name)
			}
		}
	}
}
