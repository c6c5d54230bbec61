package program

import (
	"context"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// Factors is each block's relevance and derivative apart, of each head.
const Factors = factors

// Widest returns the largest number of channels in the program of a question.
func Widest(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, q Question) int {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	widen(g, []Question{q})
	widest := 0
	for _, node := range g.Proto.Graph.Node {
		node := onnx.Node{NodeProto: node}
		if shape := g.Shape(node.Output[0]); len(shape) > 0 {
			widest = max(widest, shape[len(shape)-1])
		}
	}
	return widest
}

// MaskedNodes returns the operators of the program that looks at a layer's value
// through a mask.
func MaskedNodes(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, layer string) []string {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.compileWalk(g, 2, n.masked(layer, "all", func(value []int) []int { return value })); err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, node := range g.Proto.Graph.Node {
		ops = append(ops, node.OpType)
	}
	return ops
}

// JoinedDeepLIFT returns the program of [Net.DeepLIFT] for two images as devices have
// it that aren't processors, which make what is read of the reference in every run.
func JoinedDeepLIFT(ctx context.Context, t *testing.T, n *Net, slot stages.Slot) DeepLIFT {
	t.Helper()
	c, err := n.keepComparison(ctx, slot, Question{}, false, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	return DeepLIFT{c}
}

// Narrowed returns the values of which the program of a question makes less than the
// net does, and how many times.
func Narrowed(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, q Question) map[string]float64 {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	whole := maps.Clone(g.Types)
	narrow(g, []Question{q})
	less := map[string]float64{}
	for v, was := range whole {
		if shape := g.Shape(v); !slices.Equal(shape, was.Shape) {
			less[v] = float64(size(was.Shape)) / float64(size(shape))
		}
	}
	return less
}

// Unshape is what narrow knows of a change of shape.
func Unshape(axis int, at, in, out []int) (fromAxis int, fromAt []int, ok bool) {
	p, ok := unshape(pick{axis, at}, in, out)
	return p.axis, p.at, ok
}

// Types returns what ONNX Runtime tells of the values of a net's model as it is read.
func Types(t testing.TB, n *Net, batch int) map[string]onnx.Type {
	t.Helper()
	m, err := n.plain(batch)
	if err != nil {
		t.Fatal(err)
	}
	types, _, err := n.infer(t.Context(), m, batch)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// Simplified returns a net's model as ONNX Runtime simplifies it, with all of its weights
// or without those of so many elements at least that only multiply matrices, and how many
// of them there are.
func Simplified(t testing.TB, n *Net, batch, least int) (*onnx.Model, int) {
	t.Helper()
	m, err := n.plain(batch)
	if err != nil {
		t.Fatal(err)
	}
	count, multiplies := 0, multipliers(m, least)
	m, err = optimisedWithout(m, func(w *onnxpb.TensorProto) bool {
		out := least > 0 && multiplies(w)
		if out {
			count++
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, count
}

// Rewritten returns the graph of a net whose values have types that ONNX Runtime might
// tell, and which it leaves as it is. Values made in between have none.
func Rewritten(n *Net, batch int, types map[string]onnx.Type) (*onnx.Graph, error) {
	m, err := n.plain(batch)
	if err != nil {
		return nil, err
	}
	if _, err := rewrite.ToOpset(m, types); err != nil {
		return nil, err
	}
	return onnx.NewGraph(m, types)
}

// Compile makes the bytes of a program that answers a question, as [Net.Gradient] does,
// with accounts if they are asked for.
func Compile(n *Net, g *onnx.Graph, batch int, q Question, audit bool) ([]byte, error) {
	_, err := n.compileWalk(g, batch, walk{
		Question: q,
		name:     "gradient",
		feeds: func(b bounds) []feed {
			return []feed{{"targets", []int{b.batch, n.Classes}}, {"images", b.images(b.batch)}}
		},
		images: func(*onnx.Fragment) string { return "runexp_images" },
		audit:  audit,
	})
	return encoded(g, err)
}

// CompileMasked makes the bytes of a program that looks at a layer through masks.
func CompileMasked(n *Net, g *onnx.Graph, batch int, layer string) ([]byte, error) {
	_, err := n.compileWalk(g, batch, n.masked(layer, "all", func(value []int) []int { return value }))
	return encoded(g, err)
}

// CompileDeepLIFT makes the bytes of the programs of [Net.DeepLIFT].
func CompileDeepLIFT(n *Net, g *onnx.Graph, batch int, q Question, official, once bool) (here, there []byte, err error) {
	c, err := n.compileComparison(g, g, q, official, batch, once)
	if err != nil {
		return nil, nil, err
	}
	if here, err = c.here.Encode(); err == nil {
		there, err = c.there.Encode()
	}
	return here, there, err
}

// CompileAttention makes the bytes of the program of [Net.Attention].
func CompileAttention(n *Net, g *onnx.Graph, batch int, what Glance) ([]byte, error) {
	_, err := n.compileAttention(g, what, false, batch)
	return encoded(g, err)
}

// encoded returns the bytes of a graph that became a program unless that failed.
func encoded(g *onnx.Graph, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return g.Encode()
}

// LayerOf returns the name of a layer that experiments may ask for.
func LayerOf(g *onnx.Graph, k int) (_ string, err error) {
	defer onnx.Sound(&err)
	middle, final := relevance.Layers(g)
	relevance.Rectifiers(g)
	relevance.HasAttention(g)
	relevance.PatchEmbedding(g)
	nodes := g.Proto.Graph.Node
	if len(nodes) == 0 {
		return "", nil // the answer is the image
	}
	return []string{middle, final, nodes[k%len(nodes)].Output[0]}[k%3], nil
}

// Wavers is [Net.wavers].
func Wavers(ctx context.Context, n *Net, slot stages.Slot) (bool, error) { return n.wavers(ctx, slot) }

// Begin begins the rehearsal of one more stage.
func (r *Rehearsal) Begin() { r.act++ }

// Digests returns the digests of the program that answers q, with the last bits of the
// named weights of the graph turned over, which hold floats: as if they were computed, or
// given, otherwise.
func Digests(ctx context.Context, n *Net, slot stages.Slot, q Question, turned func(computed bool) bool) (stages.Digest, int, error) {
	k, err := n.keptGraph(ctx, slot, 2)
	if err != nil {
		return stages.Digest{}, 0, err
	}
	g, count := k.Clone(), 0
	for i, t := range g.Proto.Graph.Initializer {
		if _, computed := g.Computed[t.Name]; onnx.Exact(t) || !turned(computed) {
			continue
		}
		count++
		other := proto.Clone(t).(*onnxpb.TensorProto)
		other.RawData[0] ^= 1
		g.Proto.Graph.Initializer[i] = other
	}
	g, err = onnx.NewGraph(g.Model, g.Types) // which reads the weights anew
	if err != nil {
		return stages.Digest{}, 0, err
	}
	r, err := n.compileWalk(g, 2, n.gradient(q))
	return digestOf(g.Model, r), count, err
}
