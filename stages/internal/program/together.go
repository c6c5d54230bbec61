package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Together reports whether two questions may be asked of one program, with one way forward, and each get the
// bits that it would get alone. Of more, any two must be.
//
// ONNX Runtime makes one node of two that compute the same, and one of a Conv and the Add that alone reads
// it, which gives other bits. So the two programs must have the same nodes going forward, and a Conv of both
// that Add for its only reader in both, or in neither.
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

// An anatomy is what the bits of a program depend on when others join it.
type anatomy struct {
	// forward tells the weights of the nodes that go forward and [merge] may have merged. What else changes
	// there, [narrow], [halve] and [widen], changes no bits.
	forward string
	// readers has for every Conv and BatchNormalization the only node that reads it, if the two may become
	// one; zero if not.
	readers map[onnx.Sum]onnx.Sum
}

func (*anatomy) Close() error { return nil }

// anatomy returns that of the program that answers q alone.
func (n *Net) anatomy(ctx context.Context, slot stages.Slot, batch int, q Question) (*anatomy, error) {
	batch = n.AtOnce(ctx, slot, batch)
	key := fmt.Sprintf("anatomy of %v, batch %d of %s", q, batch, n.digest)
	c, err := slot.Share(key, 0, func() (_ io.Closer, err error) {
		defer onnx.Sound(&err)
		r := n.gradient(q)
		r.Plain = true
		p, err := n.lower(ctx, slot, batch, r)
		if err != nil {
			return nil, err
		}
		return dissect(p.Graph, p.Forward), nil
	})
	if err != nil {
		return nil, err
	}
	return c.(*anatomy), nil
}

// dissect returns the anatomy of a graph, given the nodes that go forward.
func dissect(g *onnx.Graph, forward []*onnxpb.NodeProto) *anatomy {
	var weights strings.Builder
	named := map[string]bool{}
	for _, node := range forward {
		for _, v := range node.Input {
			if named[v] = true; g.Weight(v) != nil && slices.Contains(products, node.OpType) {
				fmt.Fprintf(&weights, "%q ", v)
			}
		}
	}
	x := onnx.NewExpressions(g.Proto.Graph.Node, func(v string) onnx.Sum {
		// The model's weights are known by their names, those of ways back by what they hold.
		switch w := g.Weight(v); {
		case named[v]:
			return onnx.SumOf([]byte(v))
		case w != nil:
			return onnx.TensorSum(w)
		}
		return onnx.Sum{}
	})
	nodes, readers := map[onnx.Sum]*onnxpb.NodeProto{}, map[onnx.Sum][]onnx.Sum{}
	for _, node := range g.Proto.Graph.Node {
		self := x.Node(node)
		nodes[self] = node
		for _, v := range node.Input {
			s := x.Value(v)
			if r := readers[s]; len(r) < 2 && !slices.Contains(r, self) { // one, or several
				readers[s] = append(readers[s], self)
			}
		}
	}
	a := &anatomy{weights.String(), map[onnx.Sum]onnx.Sum{}}
	for self, node := range nodes {
		if !slices.Contains(products, node.OpType) {
			continue
		}
		a.readers[self] = onnx.Sum{}
		if r := readers[self]; len(r) == 1 && slices.Contains(joinable, nodes[r[0]].OpType) {
			a.readers[self] = r[0]
		}
	}
	return a
}

// products are the operators that others may become one with.
var products = []string{"Conv", "BatchNormalization"}

// joinable are the operators that become one with the Conv before them and may have other bits then. A Relu,
// which does so too, is exact.
var joinable = []string{"Add", "Sum", "Sigmoid", "Tanh"}
