package program

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Factors is each block's relevance and derivative apart, of each head.
const Factors = lower.Factors

// Widest returns the largest number of channels in the program of a question.
func Widest(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, q lower.Question) int {
	t.Helper()
	p, err := n.compile(ctx, slot, 2, n.gradient(q))
	if err != nil {
		t.Fatal(err)
	}
	g := p.Graph
	widest := 0
	for _, node := range g.Proto.Graph.Node {
		node := onnx.Node{NodeProto: node}
		if shape := g.Shape(node.Output[0]); len(shape) > 0 {
			widest = max(widest, shape[len(shape)-1])
		}
	}
	return widest
}

// MaskedNodes returns the operators of the program that looks at a layer's value through a mask.
func MaskedNodes(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, layer string) []string {
	t.Helper()
	p, err := n.compile(ctx, slot, 2, maskedLayer(layer, func(value []int) []int { return value }))
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, node := range p.Graph.Proto.Graph.Node {
		ops = append(ops, node.OpType)
	}
	return ops
}

// JoinedDeepLIFT returns the program of [Net.DeepLIFT] for two images as devices have it that aren't
// processors, which make what is read of the reference in every run.
func JoinedDeepLIFT(ctx context.Context, t *testing.T, n *Net, slot stages.Slot) DeepLIFT {
	t.Helper()
	d, err := n.deepLIFT(ctx, slot, lower.Question{}, false, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Sunk returns the values of which the program of a question computes less than the net does.
func Sunk(ctx context.Context, t *testing.T, n *Net, slot stages.Slot, q lower.Question) (less []string) {
	t.Helper()
	g, err := n.Graph(ctx, slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	whole := maps.Clone(g.Types)
	r := n.gradient(q)
	r.Unrun = true
	if _, err := compile(n, g, 2, r); err != nil {
		t.Fatal(err)
	}
	for v, was := range whole {
		if !slices.Equal(g.Shape(v), was.Shape) {
			less = append(less, v)
		}
	}
	return less
}

// Compile changes a graph to the program that answers a question, as [Net.Gradient] does.
func Compile(n *Net, g *onnx.Graph, batch int, q lower.Question) error {
	_, err := compile(n, g, batch, n.gradient(q))
	return err
}

func compile(n *Net, g *onnx.Graph, batch int, r lower.Request) (*lower.Lowered, error) {
	return lower.Program(context.Background(), n.source(func(int) (*onnx.Graph, error) { return g, nil }),
		batch, r)
}

// BatchDependent is [Net.batchDependent].
func BatchDependent(ctx context.Context, n *Net, slot stages.Slot) (bool, error) {
	return n.batchDependent(ctx, slot)
}

// Begin begins the rehearsal of one more stage.
func (r *Rehearsal) Begin() { r.act++ }

// Digests returns the digests of the program that answers q, with the last bits of the named weights of the
// graph turned over, which hold floats: as if they were computed, or given, otherwise.
func Digests(ctx context.Context, n *Net, slot stages.Slot, q lower.Question,
	turned func(computed bool) bool) (stages.Digest, int, error) {
	k, err := n.preparedGraph(ctx, slot, 2)
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
	p, err := compile(n, g, 2, n.gradient(q))
	if err != nil {
		return stages.Digest{}, 0, err
	}
	return digestOf(p), count, nil
}

// Need returns what a run of the program needs, in bytes, and whether it may be more.
func (p *Program) Need() (bytes int64, hidden bool) { return p.need.Run, p.need.Hidden }

// GradientOf is [Net.Gradient] of exactly batch images.
func GradientOf(ctx context.Context, n *Net, slot stages.Slot, q lower.Question, batch int) (
	Gradient, error,
) {
	p, err := n.questioned(ctx, slot, "gradient", batch, n.gradient(q))
	return Gradient{p}, err
}

// ForwardOf is [Net.Forward] of exactly batch images.
func ForwardOf(ctx context.Context, n *Net, slot stages.Slot, batch int) (Forward, error) {
	r := classification
	r.Kind = lower.Verbatim
	p, err := n.cached(ctx, slot, "forward", batch, 2*n.size, r)
	return Forward{p}, err
}

// Warned returns the warning about a usage, "" if there is none.
func Warned(u Usage) (text string) {
	u.warn(func(format string, args ...any) { text = fmt.Sprintf(format, args...) })
	return text
}

// SetDear sets the share of a run from which fallbacks and copies are worth a warning, and returns what it
// was.
func SetDear(share float64) (was float64) {
	was, dear = dear, share
	return was
}

// DigestOn returns the digest of a gradient's program for the device of a slot.
func DigestOn(ctx context.Context, n *Net, slot stages.Slot, precision string,
	q lower.Question) (stages.Digest, error) {
	defer func(was string) { n.precision = was }(n.precision)
	n.precision = precision
	p, err := n.compile(ctx, slot, 2, n.gradient(q))
	if err != nil {
		return stages.Digest{}, err
	}
	return digestOf(p), nil
}
