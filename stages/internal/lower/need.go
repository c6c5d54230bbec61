package lower

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

// A Need is the memory that a program takes, in bytes, computed from the sizes of its values: those that
// are live at once when its nodes run in order. It includes neither inputs and outputs nor the workspace
// of kernels, except what scratch returns.
type Need struct {
	Run  int64 // at most, during a run
	Kept int64 // between runs, for values that depend only on weights
	// Hidden means that nodes contain graphs, or values of unknown size: Run may be too small.
	Hidden bool
}

// Need returns the program's Need. Without a graph the sizes are those that ONNX Runtime infers.
func (l *Lowered) Need() (Need, error) {
	if l.Graph != nil {
		return NeedOf(l.Graph), nil
	}
	g, err := typed(l.Model)
	if err != nil {
		return Need{Hidden: true}, err
	}
	return NeedOf(g), nil
}

// typed returns a model with the types that ONNX Runtime infers without running it.
func typed(m *onnx.Model) (*onnx.Graph, error) {
	runtime, err := ort.Isolated()
	if err != nil {
		return nil, err
	}
	defer runtime.Close()
	light := exposed(m)
	detachWeights(light, untyping)
	b, err := light.Encode()
	if err != nil {
		return nil, err
	}
	infos, err := runtime.Outputs(b)
	if err != nil {
		return nil, fmt.Errorf("the sizes of the model's values: %w", err)
	}
	types := map[string]onnx.Type{}
	for _, v := range infos {
		// Scalars and values of unknown rank look alike.
		if v.Elem != 0 && len(v.Dims) > 0 && !slices.ContainsFunc(v.Dims, func(d int) bool { return d < 0 }) {
			types[v.Name] = onnx.Type{Elem: onnxpb.TensorProto_DataType(v.Elem), Shape: v.Dims}
		}
	}
	for _, v := range m.Inputs() {
		types[v.Name] = onnx.Type{Elem: v.Elem, Shape: v.Shape}
	}
	return onnx.NewGraph(m, types)
}

// NeedOf adds up the values that are live at each node.
func NeedOf(g *onnx.Graph) (need Need) {
	a := accounts{g: g, holds: map[string]*held{}, reads: map[string]int{}}
	for _, t := range g.Proto.Graph.Initializer {
		a.holds[t.Name] = &held{constant: true}
	}
	for _, v := range slices.Concat(g.Inputs(), g.Outputs()) {
		a.holds[v.Name] = &held{fed: true}
		a.reads[v.Name]++ // by the owner of the buffer
	}
	for _, n := range g.Proto.Graph.Node {
		for _, v := range onnx.Taken(n) {
			a.reads[v]++
		}
	}
	for _, proto := range inOrder(g.Proto.Graph.Node) {
		n := onnx.Node{NodeProto: proto}
		if slices.ContainsFunc(n.Attribute, func(t *onnxpb.AttributeProto) bool { return t.G != nil }) {
			need.Hidden = true
		}
		a.node(n)
		need.Run = max(need.Run, a.alive+a.scratch(n))
		a.drop(n)
	}
	need.Kept = a.kept
	need.Hidden = need.Hidden || a.unknown
	return need
}

// inOrder returns nodes in the order in which ONNX Runtime runs them: depth first from the nodes that
// nothing reads, the last one first, to the nodes that they read, the last of these first too; a node
// follows all nodes that it reads.
func inOrder(nodes []*onnxpb.NodeProto) []*onnxpb.NodeProto {
	maker := map[string]int{}
	for i, n := range nodes {
		for _, v := range n.Output {
			if v != "" {
				maker[v] = i
			}
		}
	}
	before := make([][]int, len(nodes))
	isRead := make([]bool, len(nodes))
	for i, n := range nodes {
		for _, v := range onnx.Taken(n) {
			if k, ok := maker[v]; ok {
				before[i] = append(before[i], k)
				isRead[k] = true
			}
		}
		slices.Sort(before[i])
	}
	type step struct {
		node int
		done bool // its inputs are visited
	}
	var steps []step
	for i := range nodes {
		if !isRead[i] {
			steps = append(steps, step{i, false})
		}
	}
	seen := make([]bool, len(nodes))
	out := make([]*onnxpb.NodeProto, 0, len(nodes))
	for len(steps) > 0 {
		s := steps[len(steps)-1]
		steps = steps[:len(steps)-1]
		switch {
		case s.done:
			out = append(out, nodes[s.node])
		case !seen[s.node]:
			seen[s.node] = true
			steps = append(steps, step{s.node, true})
			for _, k := range before[s.node] {
				if !seen[k] {
					steps = append(steps, step{k, false})
				}
			}
		}
	}
	return out
}

// accounts are the memory of values, node by node.
type accounts struct {
	g           *onnx.Graph
	holds       map[string]*held // by value
	reads       map[string]int   // future reads, by value
	alive, kept int64
	unknown     bool // a node has made a value of unknown size
}

// A held is the memory of a value, or of several values that share it.
type held struct {
	size          int64
	values        int
	fed, constant bool // an input or output; a value that depends only on weights
}

// node accounts for the outputs of n.
func (a *accounts) node(n onnx.Node) {
	constant := !slices.ContainsFunc(onnx.Taken(n.NodeProto),
		func(v string) bool { return a.holds[v] == nil || !a.holds[v].constant })
	for _, v := range n.Output {
		if v == "" || a.holds[v] != nil {
			continue
		}
		size, known := a.size(v)
		if !known && strings.HasPrefix(v, prefix) {
			size = a.largest(n) // n was emitted by a pass, from that operand
		} else if !known {
			a.unknown = true
		}
		h := &held{size: size, constant: constant}
		if constant {
			a.kept += size
		} else if in := a.viewed(n, size); in != nil {
			h = in
		} else {
			a.alive += size
		}
		h.values++
		a.holds[v] = h
	}
}

// views are the operators whose output is the memory of their input.
var views = []string{"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}

// viewed returns the memory of the input that n's output shares, nil if it takes its own.
func (a *accounts) viewed(n onnx.Node, size int64) *held {
	h := a.holds[n.In(0)]
	if !slices.Contains(views, n.OpType) || h == nil || h.fed || h.constant || h.size != size {
		return nil
	}
	return h
}

// drop frees the values that n reads last, and its outputs that nothing reads.
func (a *accounts) drop(n onnx.Node) {
	for _, v := range onnx.Taken(n.NodeProto) {
		if a.reads[v]--; a.reads[v] == 0 {
			a.free(v)
		}
	}
	for _, v := range n.Output {
		if a.reads[v] == 0 {
			a.free(v)
		}
	}
}

func (a *accounts) free(v string) {
	h := a.holds[v]
	if h == nil || h.fed || h.constant {
		return
	}
	if h.values--; h.values == 0 {
		a.alive -= h.size
	}
}

// size returns the bytes of a value.
func (a *accounts) size(v string) (size int64, known bool) {
	t, ok := a.g.Types[v]
	if !ok || slices.ContainsFunc(t.Shape, func(d int) bool { return d < 0 }) {
		return 0, false
	}
	return int64(onnx.Size(t.Shape)) * int64(max(1, onnx.ElemSize(t.Elem))), true
}

// scratch returns the memory of a kernel's workspace.
func (a *accounts) scratch(n onnx.Node) int64 {
	switch n.OpType {
	case "ConvTranspose": // the columns of an image
		x, w := a.g.Shape(n.In(0)), a.g.Shape(n.In(1))
		if len(x) < 3 || len(w) < 3 {
			return 0
		}
		return 4 * int64(onnx.Size(w[1:])) * int64(onnx.Size(x[2:]))
	case "Einsum", "MatMul", "Gemm": // operands transposed or packed
		return a.largest(n)
	}
	return 0
}

// largest returns the size of the largest operand of n.
func (a *accounts) largest(n onnx.Node) (most int64) {
	for _, v := range onnx.Taken(n.NodeProto) {
		size, _ := a.size(v)
		most = max(most, size)
	}
	return most
}
