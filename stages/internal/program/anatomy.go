package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// OneForward reports whether two questions can share a forward pass, so that each result has the bits that
// it has alone. More can where any two of them can.
//
// ONNX Runtime merges nodes that compute the same, and fuses a Conv with the Add that is its only reader,
// which gives other bits. So the two programs must have the same forward pass, and a Conv of both must have
// that Add as its only reader in both, or in neither.
func (n *Net) OneForward(ctx context.Context, slot stages.Slot, batch int, a, b lower.Question) bool {
	f, err := n.anatomy(ctx, slot, batch, a.String(), n.gradient(a))
	if err != nil {
		return false
	}
	g, err := n.anatomy(ctx, slot, batch, b.String(), n.gradient(b))
	return err == nil && f.shares(g)
}

// OneGlance reports the same of two glances at attention, of which those that explain a class ask q.
func (n *Net) OneGlance(ctx context.Context, slot stages.Slot, batch int, a, b lower.Glance,
	q lower.Question) bool {
	of := func(what lower.Glance) (*anatomy, error) {
		alone := []lower.Glance{what}
		return n.anatomy(ctx, slot, batch, glancesKey(alone, q), n.glances(alone, q))
	}
	f, err := of(a)
	if err != nil {
		return false
	}
	g, err := of(b)
	return err == nil && f.shares(g)
}

// shares reports whether two programs can share a forward pass.
func (f *anatomy) shares(g *anatomy) bool {
	if f.forward != g.forward {
		return false
	}
	for node, reader := range f.readers {
		if other, ok := g.readers[node]; ok && other != reader {
			return false
		}
	}
	return true
}

// An anatomy is what the bits of a program depend on when it shares its forward pass.
type anatomy struct {
	// forward has the weights of the nodes of the forward pass that fold_batchnorm may have changed. The
	// other passes that change some, sink_gather, gemm_alpha and pad_channels, change no bits.
	forward string
	// readers has for every Conv and BatchNormalization its only reader, if the two may be fused; zero if
	// not.
	readers map[onnx.Sum]onnx.Sum
}

func (*anatomy) Close() error { return nil }

// anatomy returns the anatomy of the program of a request, which is called name.
func (n *Net) anatomy(ctx context.Context, slot stages.Slot, batch int, name string,
	r lower.Request) (*anatomy, error) {
	batch = n.AtOnce(ctx, slot, batch)
	key := fmt.Sprintf("anatomy of %s, batch %d of %s", name, batch, n.digest)
	c, err := slot.Share(key, 0, func() (_ io.Closer, err error) {
		defer onnx.Sound(&err)
		r.KeepNodes = true
		p, err := n.compile(ctx, slot, batch, r)
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

// dissect returns the anatomy of a graph, given the nodes of its forward pass.
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
		// The model's weights are identified by their names, those of backward passes by their contents.
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
		if r := readers[self]; len(r) == 1 && slices.Contains(fusible, nodes[r[0]].OpType) {
			a.readers[self] = r[0]
		}
	}
	return a
}

// products are the operators that others may be fused with.
var products = []string{"Conv", "BatchNormalization"}

// fusible are the operators that are fused with the Conv before them and may have other bits then, even a
// Clip. A Relu, which is fused too, has the same.
var fusible = []string{"Add", "Clip", "HardSigmoid", "Sum", "Sigmoid", "Tanh"}
