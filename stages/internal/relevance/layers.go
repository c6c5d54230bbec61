package relevance

import (
	"maps"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Layers returns the values that experiments call the middle and the final layer, or "" if a model has none:
// final is the last value before spatial positions are pooled or flattened, middle the median of the list
// that ends with final.
//
// The list has the values that
//
//   - are cuts: all paths from the input to the output pass through them, so that the
//     model is a function of each of them alone;
//   - have spatial positions: feature maps, [B,C,h,w] or [B,h,w,C], or the tokens of a
//     square grid of patches, [B,T,C] or [B,C,T], with up to [MaxOtherTokens] before them;
//     of a text all tokens, [B,T,C]; rounded to integers they are none;
//   - end a layer: the output of an activation, or a sum of branches without an activation
//     after it, as in residual streams; of a text also a LayerNormalization, in the place
//     of what it normalises. Pooling ends no layer.
//
// For VGG-11 these are its eight ReLUs, middle the fifth; for ResNet-18 the ReLUs after the stem and each
// block, middle the last one of layer2: as in Rao, Böhle and Schiele, CVPR 2022, section 4. If the classes
// are computed from a class token, the patches after the last block's attention have no influence, and the
// list ends before that block.
func Layers(g *onnx.Graph) (middle, final Value) { return MiddleAndFinal(Cuts(g)) }

// MiddleAndFinal returns the layers that [Layers] chooses from the list of [Cuts].
func MiddleAndFinal(list []Value) (middle, final Value) {
	if len(list) == 0 {
		return "", ""
	}
	return list[len(list)/2], list[len(list)-1]
}

// Cuts returns the values that [Layers] chooses from, in the order of the nodes.
func Cuts(g *onnx.Graph) []Value {
	p := newPath(g)
	var list []int // indices of nodes
	grids := p.grids()
	for i := range p.nodes {
		v, ok := p.cut(i)
		_, rounded := integerRanges[g.Types[v].Elem]
		if ok && !rounded && p.ends(i) && grids.places(v) {
			list = append(list, i)
		}
	}
	if last := p.attention(); last >= 0 && len(list) > 0 && p.readsToken(list[len(list)-1]) {
		before := slices.DeleteFunc(slices.Clone(list), func(i int) bool { return i > last })
		if len(before) > 0 {
			list = before
		}
	}
	var out []Value
	for _, i := range list {
		v, _ := p.cut(i)
		out = append(out, v)
	}
	return out
}

// A path is the part of a model between its input, or a text's embedding, and its outputs: the nodes that
// depend on the one and on which one of the others depends, through data inputs.
type path struct {
	g          *onnx.Graph
	near       *neighbours
	ops        map[string]*Op
	nodes      []onnx.Node
	producers  map[Value]int  // by value on the path: its node
	on         map[Value]bool // values on the path
	reads      map[Value][]int
	results    map[Value]bool // the outputs
	lastReader []int          // by node: the last node that reads a value produced before it

	// Cached results of activates and multiplied: without them branches that join again would be followed
	// exponentially often.
	active, factors map[int]bool
}

func newPath(g *onnx.Graph) *path {
	p := &path{g: g, near: newNeighbours(g), ops: operators(), producers: map[Value]int{},
		on: map[Value]bool{}, reads: map[Value][]int{}, results: map[Value]bool{},
		active: map[int]bool{}, factors: map[int]bool{}}
	from := map[Value]bool{}
	for _, v := range p.roots() {
		from[v] = true
	}
	for _, n := range g.Proto.Graph.Node {
		if node := (onnx.Node{NodeProto: n}); slices.ContainsFunc(p.data(node),
			func(v Value) bool { return from[v] }) {
			for _, v := range n.Output {
				from[v] = true
			}
		}
	}
	for _, v := range g.Outputs() {
		p.results[v.Name] = true
	}
	to := maps.Clone(p.results)
	for _, n := range slices.Backward(g.Proto.Graph.Node) {
		node := onnx.Node{NodeProto: n}
		if !slices.ContainsFunc(n.Output, func(v Value) bool { return to[v] && from[v] }) {
			continue
		}
		p.nodes = append(p.nodes, node)
		for _, v := range p.data(node) {
			to[v] = true
		}
	}
	slices.Reverse(p.nodes)
	for v := range from {
		p.on[v] = to[v] && v != ""
	}
	for i, n := range p.nodes {
		for _, v := range n.Output {
			p.producers[v] = i
		}
		for _, v := range p.data(n) {
			if p.on[v] {
				p.reads[v] = append(p.reads[v], i)
			}
		}
	}
	last := -1
	for _, v := range p.roots() {
		last = max(last, p.lastRead(v))
	}
	for _, n := range p.nodes {
		p.lastReader = append(p.lastReader, last)
		for _, v := range n.Output {
			last = max(last, p.lastRead(v))
		}
	}
	return p
}

// roots returns the values where paths begin.
func (p *path) roots() []Value {
	if p.g.Root != "" {
		return []Value{p.g.Root}
	}
	var out []Value
	for _, v := range p.g.Inputs() {
		out = append(out, v.Name)
	}
	return out
}

// data returns the inputs of a node through which values flow.
func (p *path) data(n onnx.Node) []Value {
	op := p.ops[n.OpType]
	if op == nil {
		return onnx.Taken(n.NodeProto)
	}
	if op.Kind == Opaque {
		return nil
	}
	var out []Value
	for i, v := range n.Input {
		if op.Role(i) != Config {
			out = append(out, v)
		}
	}
	return out
}

// lastRead returns the last node that reads v, or -1.
func (p *path) lastRead(v Value) int {
	if p.results[v] {
		return len(p.nodes)
	}
	if r := p.reads[v]; len(r) > 0 {
		return r[len(r)-1]
	}
	return -1
}

// cut returns the output of node i if it is a cut: nodes are in topological order, so no value produced
// before may be read after node i.
func (p *path) cut(i int) (Value, bool) {
	var made []Value
	for _, v := range p.nodes[i].Output {
		if p.on[v] {
			made = append(made, v)
		}
	}
	if len(made) != 1 || p.lastReader[i] > i {
		return "", false
	}
	return made[0], true
}

// ends reports whether node i ends a layer.
func (p *path) ends(i int) bool {
	if p.activates(i) {
		return true
	}
	n := p.nodes[i]
	if p.g.Root != "" && p.normalised(n.Output[0]) {
		return false
	}
	if p.g.Root != "" && n.OpType == "LayerNormalization" {
		return true
	}
	op := p.ops[n.OpType]
	if op == nil || op.Kind != Sum || p.branches(n) < 2 {
		return false
	}
	return slices.ContainsFunc(p.reads[n.Output[0]], func(k int) bool { return !p.activates(k) })
}

// normalised reports whether a value is read by a LayerNormalization alone: a scale of it changes nothing.
func (p *path) normalised(v Value) bool {
	r := p.reads[v]
	return len(r) == 1 && p.nodes[r[0]].OpType == "LayerNormalization"
}

// activates reports whether node i computes an activation, possibly gated, or concatenates activations.
func (p *path) activates(i int) bool {
	known, ok := p.active[i]
	if !ok {
		known = p.activation(i)
		p.active[i] = known
	}
	return known
}

func (p *path) activation(i int) bool {
	n := p.nodes[i]
	switch n.OpType {
	case "Clip", "PRelu":
		return true
	case "Mul":
		return p.branches(n) > 1
	case "Concat":
		for _, v := range n.Input {
			if k, ok := p.producers[v]; !ok || !p.activates(k) {
				return false
			}
		}
		return true
	}
	op := p.ops[n.OpType]
	return op != nil && op.Kind == Activation
}

// branches returns the number of inputs of a node that are on the path.
func (p *path) branches(n onnx.Node) int {
	count := 0
	for _, v := range p.data(n) {
		if p.on[v] {
			count++
		}
	}
	return count
}

// attention returns the last Softmax of an attention between tokens, or -1.
func (p *path) attention() int {
	for i, n := range slices.Backward(p.nodes) {
		if s := p.g.Shape(n.Output[0]); n.OpType == "Softmax" && len(s) >= 3 && s[len(s)-1] == s[len(s)-2] &&
			s[len(s)-1] > 1 {
			return i
		}
	}
	return -1
}

// readsToken reports whether a single token is selected after node i.
func (p *path) readsToken(i int) bool {
	for _, n := range p.nodes[i+1:] {
		if n.OpType != "Gather" && n.OpType != "Slice" && n.OpType != "Split" {
			continue
		}
		in, out := p.g.Shape(n.Input[0]), p.g.Shape(n.Output[0])
		if len(in) == 3 && in[1] > 1 && size(out) == size(in)/in[1] {
			return true
		}
	}
	return false
}

// ConvsAfter returns the number of convolutions after a value, on paths from the input to the output, and the
// number of all convolutions.
func ConvsAfter(g *onnx.Graph, v Value) (behind, all int) {
	from := false
	for _, n := range newPath(g).nodes {
		if n.OpType == "Conv" || n.OpType == "ConvTranspose" {
			all++
			if from {
				behind++
			}
		}
		from = from || slices.Contains(n.Output, v)
	}
	return behind, all
}
