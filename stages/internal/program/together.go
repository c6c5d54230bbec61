package program

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Together reports whether two questions may be asked of one program, with one way
// forward, and each get the bits that it would get alone. Of more, any two must be.
//
// ONNX Runtime makes one node of two that compute the same, and one of a Conv and the Add
// that alone reads it, which gives other bits. So the two programs must have the same
// nodes going forward, and a Conv of both that Add for its only reader in both, or in
// neither.
func (n *Net) Together(ctx context.Context, slot stages.Slot, batch int, a, b Question) bool {
	f, err := n.anatomy(ctx, slot, batch, a)
	if err != nil {
		return false
	}
	g, err := n.anatomy(ctx, slot, batch, b)
	if err != nil || f.forward != g.forward {
		return false
	}
	for node, reader := range f.readers {
		if other, ok := g.readers[node]; ok && other != reader {
			return false
		}
	}
	return true
}

// A sum names what a node computes: nodes of one sum compute the same.
type sum [sha256.Size]byte

// An anatomy is what the bits of a program depend on when others join it.
type anatomy struct {
	// forward tells the weights of the nodes that go forward and [merge] may have merged.
	// What else changes there, [narrow], [halve] and [widen], changes no bits.
	forward string
	// readers has for every Conv and BatchNormalization the only node that reads it, if
	// the two may become one; the zero sum if not.
	readers map[sum]sum
}

func (*anatomy) Close() error { return nil }

// anatomy returns that of the program that answers q alone.
func (n *Net) anatomy(ctx context.Context, slot stages.Slot, batch int, q Question) (*anatomy, error) {
	batch = n.AtOnce(ctx, slot, batch)
	key := fmt.Sprintf("anatomy of %v, batch %d of %s", q, batch, n.digest)
	c, err := slot.Share(key, 0, func() (_ io.Closer, err error) {
		defer onnx.Sound(&err)
		g, err := n.Graph(ctx, slot, batch)
		if err != nil {
			return nil, err
		}
		w := n.gradient(q)
		w.plain = true
		_, forward, err := n.build(g, batch, w)
		if err != nil {
			return nil, err
		}
		return dissect(g, forward)
	})
	if err != nil {
		return nil, err
	}
	return c.(*anatomy), nil
}

// dissect returns the anatomy of a graph, given the nodes that go forward.
func dissect(g *onnx.Graph, forward []*onnxpb.NodeProto) (*anatomy, error) {
	var weights strings.Builder
	sums := map[string]sum{}
	for _, node := range forward {
		for _, v := range node.Input {
			// The model's weights are known by their names, those of ways back by what
			// they hold.
			if sums[v] = sha256.Sum256([]byte(v)); g.Weight(v) != nil && slices.Contains(products, node.OpType) {
				fmt.Fprintf(&weights, "%q ", v)
			}
		}
	}
	nodes, readers := map[sum]*onnxpb.NodeProto{}, map[sum][]sum{}
	for _, node := range g.Proto.Graph.Node {
		parts := []proto.Message{&onnxpb.NodeProto{OpType: node.OpType, Domain: node.Domain, Attribute: node.Attribute}}
		var inputs []sum
		for _, v := range node.Input {
			if w := g.Weight(v); w != nil && sums[v] == (sum{}) {
				w = proto.Clone(w).(*onnxpb.TensorProto)
				w.Name = ""
				var err error
				if sums[v], err = summed([]proto.Message{w}, nil); err != nil {
					return nil, err
				}
			}
			inputs = append(inputs, sums[v])
		}
		self, err := summed(parts, inputs)
		if err != nil {
			return nil, err
		}
		nodes[self] = node
		for _, s := range inputs {
			if !slices.Contains(readers[s], self) {
				readers[s] = append(readers[s], self)
			}
		}
		for i, v := range node.Output {
			sums[v] = self
			if i > 0 {
				sums[v] = sha256.Sum256(append(self[:], byte(i)))
			}
		}
	}
	a := &anatomy{weights.String(), map[sum]sum{}}
	for self, node := range nodes {
		if !slices.Contains(products, node.OpType) {
			continue
		}
		a.readers[self] = sum{}
		if r := readers[self]; len(r) == 1 && slices.Contains(joinable, nodes[r[0]].OpType) {
			a.readers[self] = r[0]
		}
	}
	return a, nil
}

// products are the operators that others may become one with.
var products = []string{"Conv", "BatchNormalization"}

// joinable are the operators that become one with the Conv before them and may have
// other bits then. A Relu, which does so too, is exact.
var joinable = []string{"Add", "Sum", "Sigmoid", "Tanh"}

// summed returns the sum of what has these parts and inputs.
func summed(parts []proto.Message, inputs []sum) (s sum, err error) {
	h := sha256.New()
	for _, m := range parts {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return s, err
		}
		h.Write(b)
	}
	for _, in := range inputs {
		h.Write(in[:])
	}
	return sum(h.Sum(nil)), nil
}
