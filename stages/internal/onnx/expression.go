package onnx

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Sum is the digest of an expression: of the operators, attributes and constants from which a value is
// computed. The names of values and nodes, and the order of nodes, aren't part of it.
type Sum [sha256.Size]byte

// SumOf digests parts with their lengths.
func SumOf(parts ...[]byte) Sum {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return Sum(h.Sum(nil))
}

// TensorSum digests the content of a constant, whatever its name.
func TensorSum(t *onnxpb.TensorProto) Sum {
	about := &onnxpb.TensorProto{DataType: t.DataType, Dims: t.Dims}
	if len(t.RawData) == 0 { // the numbers are in a list of their own type
		about = proto.Clone(t).(*onnxpb.TensorProto)
		about.Name = ""
	}
	return SumOf([]byte("constant"), Encoded(about), t.RawData)
}

// Encoded returns the bytes of a message: equal messages give equal bytes.
func Encoded(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // everything that was parsed can be written
	}
	return b
}

// Expressions digests the values of a list of nodes.
type Expressions struct {
	// Kernels distinguishes nodes by the set of their used outputs, on which kernels may depend. The
	// results don't.
	Kernels bool

	makers map[string]*onnxpb.NodeProto
	leaf   func(value string) Sum
	sums   map[string]Sum
}

// NewExpressions digests the outputs of nodes, each after the nodes that it reads. leaf returns the digest
// of a value that no node makes.
func NewExpressions(nodes []*onnxpb.NodeProto, leaf func(value string) Sum) *Expressions {
	x := &Expressions{makers: map[string]*onnxpb.NodeProto{}, leaf: leaf, sums: map[string]Sum{"": {}}}
	for _, n := range nodes {
		for _, v := range n.Output {
			x.makers[v] = n
		}
	}
	return x
}

// Value returns the digest of a value.
func (x *Expressions) Value(v string) Sum {
	if s, ok := x.sums[v]; ok {
		return s
	}
	var s Sum
	if n := x.makers[v]; n == nil {
		s = x.leaf(v)
	} else if s = x.Node(n); v != n.Output[0] {
		s = SumOf(s[:], binary.AppendUvarint(nil, uint64(slices.Index(n.Output, v))))
	}
	x.sums[v] = s
	return s
}

// Node returns the digest of a node's computation, which is that of its first output. The graphs inside it
// are digested with their names.
func (x *Expressions) Node(n *onnxpb.NodeProto) Sum {
	first := n.Output[0]
	if s, ok := x.sums[first]; ok && first != "" {
		return s
	}
	attributes := slices.Clone(n.Attribute)
	slices.SortFunc(attributes, func(a, b *onnxpb.AttributeProto) int { return cmp.Compare(a.Name, b.Name) })
	reads := n.Input
	if len(Bodies(n)) > 0 {
		reads = append(slices.Clone(n.Input), Taken(n)...)
	}
	var asked []byte
	for _, v := range n.Output {
		if x.Kernels {
			asked = append(asked, byte(min(len(v), 1)))
		}
	}
	parts := [][]byte{Encoded(&onnxpb.NodeProto{OpType: n.OpType, Domain: n.Domain, Attribute: attributes}),
		asked}
	for _, v := range reads {
		s := x.Value(v)
		parts = append(parts, s[:])
	}
	s := SumOf(parts...)
	if first != "" {
		x.sums[first] = s
	}
	return s
}

// Exact reports whether the content of a constant is the same on every processor, however it was computed:
// integers are.
func Exact(t *onnxpb.TensorProto) bool {
	switch onnxpb.TensorProto_DataType(t.DataType) {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_FLOAT16,
		onnxpb.TensorProto_BFLOAT16:
		return false
	}
	return true
}

// WeightSum returns the digest of a constant of the model: of the expression from which it was computed, if
// that is known, or else of its content.
func (m *Model) WeightSum(t *onnxpb.TensorProto) Sum {
	if s, ok := m.Computed[t.Name]; ok {
		return s
	}
	return TensorSum(t)
}

// Adopt adds a constant of another graph, under its own name; name is its name there.
func (g *Graph) Adopt(t *onnxpb.TensorProto, name string, from *Graph) {
	g.AddWeight(t)
	if s, ok := from.Computed[name]; ok {
		if g.Computed == nil {
			g.Computed = map[string]Sum{}
		}
		g.Computed[t.Name] = s
	}
}

// Derive records that the constant called name was computed from others by a formula that how names; a
// change of the formula changes how. If the bytes of one of the others depend on the processor, so do its
// own, and it counts by its expression too.
func (g *Graph) Derive(name, how string, from ...string) {
	if !slices.ContainsFunc(from, func(v string) bool { _, ok := g.Computed[v]; return ok }) {
		return
	}
	parts := [][]byte{[]byte(how)}
	for _, v := range from {
		var s Sum
		if w := g.Weight(v); w != nil {
			s = g.WeightSum(w)
		}
		parts = append(parts, s[:])
	}
	g.Computed[name] = SumOf(parts...)
}
