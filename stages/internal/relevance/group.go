package relevance

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A group is a set of nodes that rules see as one node. Rules are written for the operators of a model, but
// exporters write some operators, for which ONNX has none, as several nodes. For a [Policy] with Grouped,
// these nodes form one node with the kind and roles of Linear or Elementwise; plain derivatives use
// Elementwise in any case.
type group struct {
	op      *Op
	members []onnx.Node // in order; the last one produces the output
}

// group replaces nodes of the model by groups: all groups, or only those that are faster to differentiate as
// one node. Values of seeds and wrt and values captured by an If body stay visible.
func (b *Builder) group(seeds map[Value]Value, wrt []Value, all bool) {
	f := finder{b: b, producers: map[Value]int{}, readers: map[Value][]int{}, visible: map[Value]bool{}}
	for v := range seeds {
		f.visible[v] = true
	}
	for _, v := range wrt {
		f.visible[v] = true
	}
	for _, v := range b.g.Outputs() {
		f.visible[v.Name] = true
	}
	for i, n := range b.model {
		for _, v := range n.Output {
			f.producers[v] = i
		}
		for _, v := range onnx.Taken(n.NodeProto) {
			if r := f.readers[v]; len(r) == 0 || r[len(r)-1] != i {
				f.readers[v] = append(r, i)
			}
		}
	}
	finders := []func(int) (*Op, []Value, []int){f.elementwise}
	if all {
		finders = append(finders, f.linear)
	}
	taken := map[int]bool{}
	whole := map[int]onnx.Node{} // by the index of the last member
	for i := range b.model {
		for _, find := range finders {
			op, inputs, members := find(i)
			if op == nil || slices.ContainsFunc(members, func(k int) bool { return taken[k] }) {
				continue
			}
			g := group{op: op}
			for _, k := range members {
				taken[k] = true
				g.members = append(g.members, b.model[k])
			}
			last := g.members[len(g.members)-1]
			b.groups[last.Output[0]] = g
			whole[members[len(members)-1]] = onnx.Node{NodeProto: &onnxNode{
				OpType: op.Type, Domain: "runexp", Name: last.Name, Input: inputs, Output: last.Output[:1],
			}}
			break
		}
	}
	var nodes []onnx.Node
	for i, n := range b.model {
		if w, ok := whole[i]; ok {
			n = w
		} else if taken[i] {
			continue
		}
		nodes = append(nodes, n)
	}
	b.model = nodes
}

// A finder holds the producer and the readers of each value of the model.
type finder struct {
	b         *Builder
	producers map[Value]int
	readers   map[Value][]int
	visible   map[Value]bool // values that must stay visible
}

// soleReader returns the index of the only reader of v, or −1 if there are several or v must stay visible.
func (f finder) soleReader(v Value) int {
	if r := f.readers[v]; len(r) == 1 && !f.visible[v] {
		return r[0]
	}
	return -1
}

// constant reports whether v is a weight.
func (f finder) constant(v Value) bool { return v != "" && !f.b.dynamic(v) }

// copyGroup emits the members of a group again for its copy c of n.
func (b *Builder) copyGroup(g group, n, c onnx.Node) {
	name := map[Value]Value{}
	for i, v := range n.Input {
		name[v] = ""
		if i < len(c.Input) {
			name[v] = c.Input[i]
		}
	}
	copied := group{op: g.op}
	for _, m := range g.members {
		t := onnx.Node{NodeProto: proto.Clone(m.NodeProto).(*onnxNode)}
		missing := -1
		for i, v := range m.Input {
			if other, ok := name[v]; ok {
				t.Input[i] = other
				if other == "" {
					missing = i
				}
			}
		}
		if missing >= 0 && m.OpType == "Add" {
			// Without the bias the sum is its other operand.
			name[m.Output[0]] = t.Input[1-missing]
			continue
		}
		for i, v := range m.Output {
			if v != "" {
				t.Output[i] = b.freshCopy(v)
				name[v] = t.Output[i]
			}
		}
		t.Name = t.Output[0]
		b.add(t.NodeProto)
		copied.members = append(copied.members, t)
	}
	c.Output[0] = name[n.Output[0]]
	b.groups[c.Output[0]] = copied
}

// through propagates cotangents from the output of a group's last member through the members to the inputs of
// the group.
func (b *Builder) through(n onnx.Node, members []onnx.Node, dy Value) []Value {
	outer := b.flows
	defer func() { b.flows = outer }()
	inner := b.groups[n.Output[0]]
	delete(b.groups, n.Output[0]) // the last member has the group's output
	defer func() { b.groups[n.Output[0]] = inner }()
	var from []Value
	for _, v := range n.Input {
		if b.dynamic(v) {
			from = append(from, v)
		}
	}
	b.flows = reaches(members, from)
	rel := map[Value]Value{members[len(members)-1].Output[0]: dy}
	path := slices.Clone(members)
	slices.Reverse(path)
	b.walk(path, rel, Policy{})
	back := make([]Value, len(n.Input))
	for i, v := range n.Input {
		back[i] = rel[v]
	}
	return back
}
