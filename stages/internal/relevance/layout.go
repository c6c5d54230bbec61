package relevance

import (
	"iter"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// MaxOtherTokens is how many tokens may stand before those of the places: class tokens, one of distillation,
// registers.
const MaxOtherTokens = 8

// TokenGrid returns the side of the square grid that tokens stand for, and how many stand before it without a
// place. The side is 0 where there is no such grid.
func TokenGrid(tokens int) (side, others int) {
	side = int(math.Sqrt(float64(tokens)))
	others = tokens - side*side
	if side <= 1 || others > MaxOtherTokens {
		return 0, 0
	}
	return side, others
}

// ChannelAxis returns which axis of a value holds its channels, as the nearest node says that mixes,
// normalises or pools them: 1 for the feature maps of most convolutional nets, the last one for tokens, and
// for windows and feature maps that nets like Swin keep that way. Where no node says it, it is the one that a
// linear layer acts along, as between the two of a ConvNeXt block; where there is none, feature maps have it
// first and tokens last.
func ChannelAxis(g *onnx.Graph, v Value) int { return newNeighbours(g).channelAxis(v) }

// neighbours knows the nodes that make and read each value of a graph.
type neighbours struct {
	g       *onnx.Graph
	makers  map[Value]onnx.Node
	readers map[Value][]onnx.Node
}

func newNeighbours(g *onnx.Graph) *neighbours {
	b := &neighbours{g: g, makers: map[Value]onnx.Node{}, readers: map[Value][]onnx.Node{}}
	for _, n := range g.Proto.Graph.Node {
		node := onnx.Node{NodeProto: n}
		for _, o := range n.Output {
			b.makers[o] = node
		}
		for _, i := range n.Input {
			b.readers[i] = append(b.readers[i], node)
		}
	}
	return b
}

// of returns the nodes that make or read v.
func (b *neighbours) of(v Value) iter.Seq[onnx.Node] {
	return func(yield func(onnx.Node) bool) {
		if m, ok := b.makers[v]; ok && !yield(m) {
			return
		}
		for _, n := range b.readers[v] {
			if !yield(n) {
				return
			}
		}
	}
}

// channelAxis is [ChannelAxis].
func (b *neighbours) channelAxis(v Value) int {
	rank := len(b.g.Shape(v))
	if axis := b.nearest(v); axis > 0 {
		return axis
	}
	if rank == 4 {
		return 1
	}
	return rank - 1
}

// A sight is a value near the one that is asked about: axes has, for each axis of it, the one of that value.
type sight struct {
	value Value
	axes  []int
}

// How far [neighbours.nearest] goes: so many values, and so many nodes. A model's layers are asked about one
// by one, and in a graph of thousands of nodes each may be near all others.
const (
	mostSights     = 200
	mostNeighbours = 10 * mostSights
)

// nearest goes from v in both directions through what leaves the axes apart, and returns what the first node
// says that knows; -1 if none does. A linear layer behind a Reshape counts only where no node knows: those of
// MLP-Mixer mix tokens too.
func (b *neighbours) nearest(v Value) int {
	g := b.g
	start := make([]int, len(g.Shape(v)))
	for i := range start {
		start[i] = i
	}
	queue := []sight{{v, start}}
	seen := map[Value]bool{v: true}
	mixed, looked := -1, 0
	for len(queue) > 0 && len(seen) < mostSights {
		at := queue[0]
		queue = queue[1:]
		for n := range b.of(at.value) {
			if looked++; looked > mostNeighbours {
				return mixed
			}
			if axis := verdict(g, n, at.value); axis >= 0 && axis < len(at.axes) {
				return at.axes[axis]
			}
			if mixed < 0 && b.linear(n, at.value) {
				mixed = at.axes[len(at.axes)-1]
			}
			for _, next := range along(g, n, at) {
				if !seen[next.value] {
					seen[next.value] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return mixed
}

// linear reports whether a node beside v makes it rows of a matrix, each along v's last axis, for a linear
// layer, or makes v of such a layer's rows. ONNX Runtime turns a linear layer on more than two axes into
// Reshape, Gemm and Reshape.
func (b *neighbours) linear(n onnx.Node, v Value) bool {
	defer n.Named()
	g := b.g
	if n.OpType != "Reshape" && n.OpType != "Flatten" {
		return false
	}
	rows := n.Output[0]
	if v == rows {
		rows = n.In(0)
	}
	from, to := g.Shape(v), g.Shape(rows)
	if len(from) == 0 || len(to) != 2 || to[1] != from[len(from)-1] {
		return false
	}
	for m := range b.of(rows) {
		if (m.OpType == "MatMul" || m.OpType == "Gemm" && m.Int("transA", 0) == 0) &&
			g.Weight(m.In(1)) != nil &&
			(m.In(0) == rows || m.Output[0] == rows) {
			return true
		}
	}
	return false
}

// verdict returns which axis of v a node beside it takes for the channels, -1 if it doesn't say.
func verdict(g *onnx.Graph, n onnx.Node, v Value) int {
	defer n.Named()
	rank := len(g.Shape(v))
	if v != n.In(0) && v != n.Output[0] {
		return -1
	}
	switch n.OpType {
	case "Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "GlobalAveragePool",
		"GlobalMaxPool",
		"AveragePool", "MaxPool", "LRN", "DepthToSpace", "SpaceToDepth":
		return 1
	case "LayerNormalization":
		if axis := n.Int("axis", -1); axis == -1 || axis == rank-1 {
			return rank - 1
		}
	case "MatMul":
		if g.Weight(n.In(1)) != nil && len(g.Shape(n.In(1))) == 2 {
			return rank - 1
		}
	case "ReduceMean":
		if v != n.In(0) {
			return -1
		}
		pooled := make([]bool, rank)
		for _, a := range n.Ints("axes") {
			if a < 0 {
				a += rank
			}
			if a >= 0 && a < rank {
				pooled[a] = true
			}
		}
		if left := slices.Index(pooled[1:], false); left >= 0 && slices.Contains(pooled[1:], true) &&
			slices.Index(pooled[left+2:], false) < 0 {
			return left + 1 // all places pooled, one axis left
		}
	case "Add", "Mul":
		for i := range 2 {
			w := n.In(i)
			if s := g.Shape(w); g.Weight(w) != nil && len(s) > 0 && len(s) <= rank {
				if wide := slices.IndexFunc(s,
					func(d int) bool { return d > 1 }); wide >= 0 && size(s) == s[wide] {
					return rank - len(s) + wide // a number for each channel
				}
			}
		}
	}
	return -1
}

// along returns the values on the other side of a node that keeps the axes of at apart.
func along(g *onnx.Graph, n onnx.Node, at sight) []sight {
	defer n.Named()
	var out []sight
	switch n.OpType {
	case "Transpose":
		perm := n.Ints("perm")
		if !permutes(perm, len(at.axes)) {
			return nil
		}
		axes := make([]int, len(perm))
		if at.value == n.In(0) {
			for i, p := range perm {
				axes[i] = at.axes[p]
			}
			return []sight{{n.Output[0], axes}}
		}
		for i, p := range perm {
			axes[p] = at.axes[i]
		}
		return []sight{{n.In(0), axes}}
	case "Reshape", "MatMul", "Gemm", "Gather", "Flatten", "Shape", "Squeeze", "Unsqueeze", "ReduceMean",
		"Softmax":
		return nil
	}
	for _, v := range slices.Concat(n.Input, n.Output) {
		if v != at.value && g.Weight(v) == nil && len(g.Shape(v)) == len(at.axes) {
			out = append(out, sight{v, at.axes})
		}
	}
	return out
}
