package relevance

import (
	"iter"
	"math"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// MaxOtherTokens is the maximum number of tokens before the patches: class tokens, a distillation token,
// registers.
const MaxOtherTokens = 8

// TokenGrid returns the side of the square grid of patches among tokens, and the number of tokens before
// them. The side is 0 if there is no such grid.
func TokenGrid(tokens int) (side, others int) {
	side = int(math.Sqrt(float64(tokens)))
	others = tokens - side*side
	if side <= 1 || others > MaxOtherTokens {
		return 0, 0
	}
	return side, others
}

// Signal reports whether a graph takes signals, [B,C,T] or [B,T], which have no grid.
func Signal(g *onnx.Graph) bool {
	in := g.Inputs()
	return g.Root == "" && len(in) > 0 && len(g.Shape(in[0].Name)) < 4
}

// SurePlaces is up to how many tokens before a square number of others are taken for class and distillation
// tokens without a further sign.
const SurePlaces = 2

// Places returns how so many tokens lie in the image: as stated, if that is about as many, or else as the
// square of [TokenGrid]; zero without one.
func Places(stated onnx.Tokens, tokens int) onnx.Tokens {
	if stated.Count() == tokens {
		return stated
	}
	side, others := TokenGrid(tokens)
	if side == 0 {
		return onnx.Tokens{}
	}
	return onnx.Tokens{Prefix: others, Height: side, Width: side}
}

// SureGrid reports whether the [Places] of so many tokens are certain: another number, such as the 32 words
// of a text, is a square and a rest too. They are if the model's user stated them, or if a Conv or pooling
// has that grid; then no other one may do. Without such a layer of about as many places at most two tokens
// are taken to stand before a square grid, and more, such as registers, where a value of the graph has its
// two axes; of images that aren't square none are.
func SureGrid(g *onnx.Graph, tokens int) bool {
	if Signal(g) {
		return false
	}
	found := Places(g.Tokens, tokens)
	if found.IsZero() || found == g.Tokens {
		return !found.IsZero()
	}
	if layers := gridsNear(g, tokens); len(layers) > 0 {
		return slices.Contains(layers, found)
	}
	if h, w := imageSides(g); h != w {
		return false
	}
	return found.Prefix <= SurePlaces || hasAxes(g, found)
}

// gridsNear returns the grids of the layers with places that so many tokens can be the places of, with at
// most [MaxOtherTokens] before them.
func gridsNear(g *onnx.Graph, tokens int) (out []onnx.Tokens) {
	for _, n := range g.Proto.Graph.Node {
		if n.OpType != "Conv" && n.OpType != "MaxPool" && n.OpType != "AveragePool" {
			continue
		}
		shape := g.Shape(n.Output[0])
		if len(shape) != 4 || shape[2]*shape[3] < 2 {
			continue
		}
		if rest := tokens - shape[2]*shape[3]; rest >= 0 && rest <= MaxOtherTokens {
			out = append(out, onnx.Tokens{Prefix: rest, Height: shape[2], Width: shape[3]})
		}
	}
	return out
}

// Suggested returns an example of how so many tokens may lie in the image, for messages.
func Suggested(g *onnx.Graph, tokens int) onnx.Tokens {
	if layers := gridsNear(g, tokens); len(layers) > 0 {
		return layers[len(layers)-1]
	}
	side := int(math.Sqrt(float64(tokens)))
	return onnx.Tokens{Prefix: tokens - side*side, Height: side, Width: side}
}

// hasAxes reports whether a value has the two axes of a grid.
func hasAxes(g *onnx.Graph, grid onnx.Tokens) bool {
	for _, n := range g.Proto.Graph.Node {
		for _, v := range n.Output {
			shape := g.Shape(v)
			for i := 2; i < len(shape) && len(shape) > 3; i++ {
				if shape[i-1] == grid.Height && shape[i] == grid.Width {
					return true
				}
			}
		}
	}
	return false
}

// imageSides returns the height and the width of the image that a graph takes, 0 for another input.
func imageSides(g *onnx.Graph) (height, width int) {
	in := g.Inputs()
	if len(in) == 0 || len(g.Shape(in[0].Name)) != 4 {
		return 0, 0
	}
	shape := g.Shape(in[0].Name)
	if shape[3] == 1 || shape[3] == 3 {
		return shape[1], shape[2]
	}
	return shape[2], shape[3]
}

// ChannelAxis returns the channel axis of a value, as defined by the nearest node that mixes, normalises or
// pools channels: 1 for the feature maps of most convolutional nets; the last one for tokens, and for windows
// and feature maps in nets like Swin. If no node defines it, it is the axis on which a linear layer acts, as
// between the two of a ConvNeXt block; otherwise it is 1 for feature maps and the last axis for tokens.
func ChannelAxis(g *onnx.Graph, v Value) int { return ChannelAxes(g)(v) }

// ChannelAxes returns [ChannelAxis] of any value of a graph, which is looked through once.
func ChannelAxes(g *onnx.Graph) func(v Value) int { return newNeighbours(g).channelAxis }

// neighbours holds the producers and readers of each value of a graph.
type neighbours struct {
	g         *onnx.Graph
	producers map[Value]onnx.Node
	readers   map[Value][]onnx.Node

	others map[*onnxNode][]Value // by node, once needed: its inputs and outputs without weights
	seen   map[Value]bool        // of the search in work
}

func newNeighbours(g *onnx.Graph) *neighbours {
	b := &neighbours{g: g, producers: map[Value]onnx.Node{}, readers: map[Value][]onnx.Node{},
		others: map[*onnxNode][]Value{}, seen: map[Value]bool{}}
	for _, n := range g.Proto.Graph.Node {
		node := onnx.Node{NodeProto: n}
		for _, o := range n.Output {
			b.producers[o] = node
		}
		for _, i := range n.Input {
			b.readers[i] = append(b.readers[i], node)
		}
	}
	return b
}

// of returns the nodes that produce or read v.
func (b *neighbours) of(v Value) iter.Seq[onnx.Node] {
	return func(yield func(onnx.Node) bool) {
		if m, ok := b.producers[v]; ok && !yield(m) {
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

// A sight is a value found in the search from another; axes maps its axes to those of the other.
type sight struct {
	value Value
	axes  []int
}

// Limits of the search of [neighbours.nearest], in values and in nodes. A model's layers are queried one by
// one, and in a graph of thousands of nodes the search may visit all for each.
const (
	maxSights     = 200
	maxNeighbours = 10 * maxSights
)

// nearest searches from v in both directions, through nodes that keep axes separate, and returns the axis
// defined by the first node that defines one, or -1. A linear layer after a Reshape counts only if no other
// node does: those of MLP-Mixer also mix tokens.
func (b *neighbours) nearest(v Value) int {
	g := b.g
	start := make([]int, len(g.Shape(v)))
	for i := range start {
		start[i] = i
	}
	queue := []sight{{v, start}}
	seen := b.seen
	clear(seen)
	seen[v] = true
	mixed, looked := -1, 0
	for len(queue) > 0 && len(seen) < maxSights {
		at := queue[0]
		queue = queue[1:]
		for n := range b.of(at.value) {
			if looked++; looked > maxNeighbours {
				return mixed
			}
			if axis := definedBy(g, n, at.value); axis >= 0 && axis < len(at.axes) {
				return at.axes[axis]
			}
			if mixed < 0 && b.linear(n, at.value) {
				mixed = at.axes[len(at.axes)-1]
			}
			for _, next := range b.along(n, at) {
				if !seen[next.value] {
					seen[next.value] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return mixed
}

// linear reports whether a node reshapes v to rows along its last axis for a linear layer, or such a layer's
// rows to v. ONNX Runtime converts a linear layer on more than two axes into Reshape, Gemm and Reshape.
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

// definedBy returns the axis of v that a node treats as channels, -1 if it defines none.
func definedBy(g *onnx.Graph, n onnx.Node, v Value) int {
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
		if v == n.In(0) {
			return unpooled(n.Ints("axes"), rank)
		}
	case "Add", "Mul":
		return perChannel(g, n, rank)
	}
	return -1
}

// unpooled returns the only axis after the first that isn't pooled, -1 if there are several, or if none is
// pooled.
func unpooled(axes []int, rank int) int {
	pooled := make([]bool, rank)
	for _, a := range axes {
		if a < 0 {
			a += rank
		}
		if a >= 0 && a < rank {
			pooled[a] = true
		}
	}
	left := slices.Index(pooled[1:], false)
	if left < 0 || !slices.Contains(pooled[1:], true) || slices.Contains(pooled[left+2:], false) {
		return -1
	}
	return left + 1
}

// perChannel returns the axis along which an element-wise operator has a constant with one number a channel,
// -1 without such a constant.
func perChannel(g *onnx.Graph, n onnx.Node, rank int) int {
	for i := range 2 {
		s := g.Shape(n.In(i))
		if g.Weight(n.In(i)) == nil || len(s) == 0 || len(s) > rank {
			continue
		}
		wide := slices.IndexFunc(s, func(d int) bool { return d > 1 })
		if wide >= 0 && size(s) == s[wide] {
			return rank - len(s) + wide
		}
	}
	return -1
}

// along returns the values on the other side of a node that keeps the axes of at separate.
func (b *neighbours) along(n onnx.Node, at sight) []sight {
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
	others, ok := b.others[n.NodeProto]
	if !ok {
		for _, v := range slices.Concat(n.Input, n.Output) {
			if b.g.Weight(v) == nil {
				others = append(others, v)
			}
		}
		b.others[n.NodeProto] = others
	}
	for _, v := range others {
		if v != at.value && !b.seen[v] && len(b.g.Shape(v)) == len(at.axes) {
			out = append(out, sight{v, at.axes})
		}
	}
	return out
}
