package relevance

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A group is several nodes that rules see as one. Rules are written for the operators that models are made
// of. ONNX has no word for some, and exporters write several nodes: they are put together again for a
// [Policy] that says so, and rules then see one node, of the kind and with the roles of Linear or
// Elementwise, and nothing of what it is made of. Plain derivatives know Elementwise without that.
type group struct {
	op      *Op
	members []onnx.Node // in order; the last one makes the output
}

// group replaces nodes of the model by groups, all or those that are faster to differentiate as one. Values
// of seeds and wrt are left to be seen.
func (b *Builder) group(seeds map[Value]Value, wrt []Value, all bool) {
	f := finder{b: b, makers: map[Value]int{}, readers: map[Value][]int{}, seen: map[Value]bool{}}
	for v := range seeds {
		f.seen[v] = true
	}
	for _, v := range wrt {
		f.seen[v] = true
	}
	for _, v := range b.g.Outputs() {
		f.seen[v.Name] = true
	}
	for i, n := range b.model {
		for _, v := range n.Output {
			f.makers[v] = i
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
	whole := map[int]onnx.Node{} // by the number of the last member
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

// A finder knows who makes and who reads each value of the model.
type finder struct {
	b       *Builder
	makers  map[Value]int
	readers map[Value][]int
	seen    map[Value]bool // what somebody outside wants to see
}

// only returns the one node that reads v, -1 if there are several or v is wanted outside.
func (f finder) only(v Value) int {
	if r := f.readers[v]; len(r) == 1 && !f.seen[v] {
		return r[0]
	}
	return -1
}

// constant reports whether v is a weight.
func (f finder) constant(v Value) bool { return v != "" && !f.b.dynamic(v) }

// copyGroup emits the members of a group once more for its copy c of n.
func (b *Builder) copyGroup(g group, n, c onnx.Node) {
	name := map[Value]Value{}
	for i, v := range n.Input {
		name[v] = ""
		if i < len(c.Input) {
			name[v] = c.Input[i]
		}
	}
	twin := group{op: g.op}
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
				t.Output[i] = b.again(v)
				name[v] = t.Output[i]
			}
		}
		t.Name = t.Output[0]
		b.add(t.NodeProto)
		twin.members = append(twin.members, t)
	}
	c.Output[0] = name[n.Output[0]]
	b.groups[c.Output[0]] = twin
}

// through carries what flows into the last of a group's members back through them, one after the other, to
// the inputs of the group.
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
	arrived := map[Value]Value{members[len(members)-1].Output[0]: dy}
	path := slices.Clone(members)
	slices.Reverse(path)
	b.walk(path, arrived, Policy{})
	back := make([]Value, len(n.Input))
	for i, v := range n.Input {
		back[i] = arrived[v]
	}
	return back
}
