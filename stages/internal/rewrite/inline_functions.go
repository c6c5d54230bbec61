package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// mostInlined is how many nodes inlining may make: functions that call each other twice are few bytes and
// exponentially many nodes.
const mostInlined = 1 << 18

// InlineFunctions replaces the nodes that call a function of the model by the function's nodes, so that all
// other code sees the graph that ONNX Runtime runs. It leaves calls of functions that are written in other
// versions of operators than the model, and functions named like ONNX Runtime's own operators, which it
// prefers.
func InlineFunctions(m *onnx.Model) error {
	if len(m.Proto.Functions) == 0 {
		return nil
	}
	l := inliner{m: m, functions: map[call]*onnxpb.FunctionProto{}}
	for _, f := range m.Proto.Functions {
		if l.inlines(f) {
			l.functions[call{f.Domain, f.Name, f.Overload}] = f
		}
	}
	if err := l.graph(m.Proto.Graph, nil); err != nil {
		return err
	}
	if !l.left {
		m.Proto.Functions = nil
	}
	return nil
}

// A call is the name by which a node calls a function.
type call struct{ domain, name, overload string }

// An inliner inlines functions into a model.
type inliner struct {
	m         *onnx.Model
	functions map[call]*onnxpb.FunctionProto
	left      bool // some call of a function remains
	made      int  // number of inlined nodes, and their bytes
	bytes     int
}

// inlines reports whether the operators of a function mean the same in the model as in the function, and
// its name means the function. Versions that only the function imports become the model's.
func (l *inliner) inlines(f *onnxpb.FunctionProto) bool {
	if f.Domain == "" || f.Domain == "ai.onnx" || strings.HasPrefix(f.Domain, "ai.onnx.") ||
		strings.HasPrefix(f.Domain, "com.microsoft") {
		return false
	}
	own := func(domain string) string { return strings.TrimPrefix(domain, "ai.onnx") }
	var missing []*onnxpb.OperatorSetIdProto
	for _, o := range f.OpsetImport {
		i := slices.IndexFunc(l.m.Proto.OpsetImport, func(p *onnxpb.OperatorSetIdProto) bool {
			return p.Domain == o.Domain || own(p.Domain) == "" && own(o.Domain) == ""
		})
		switch {
		case i < 0:
			missing = append(missing, o)
		case l.m.Proto.OpsetImport[i].Version != o.Version:
			return false
		}
	}
	l.m.Proto.OpsetImport = append(l.m.Proto.OpsetImport, missing...)
	return true
}

// graph inlines the calls of a graph's nodes; open are the functions that contain the graph.
func (l *inliner) graph(g *onnxpb.GraphProto, open []*onnxpb.FunctionProto) (err error) {
	g.Node, err = l.nodes(g.Node, open)
	return err
}

func (l *inliner) nodes(nodes []*onnxpb.NodeProto, open []*onnxpb.FunctionProto) ([]*onnxpb.NodeProto,
	error) {
	out := make([]*onnxpb.NodeProto, 0, len(nodes))
	for _, n := range nodes {
		for _, inner := range onnx.Bodies(n) {
			if err := l.graph(inner, open); err != nil {
				return nil, err
			}
		}
		f := l.functions[call{n.Domain, n.OpType, n.Overload}]
		if f == nil {
			l.left = l.left || slices.ContainsFunc(l.m.Proto.Functions, func(f *onnxpb.FunctionProto) bool {
				return f.Domain == n.Domain && f.Name == n.OpType && f.Overload == n.Overload
			})
			out = append(out, n)
			continue
		}
		if slices.Contains(open, f) {
			return nil, fmt.Errorf("node %s: the function %q calls itself", onnx.Node{NodeProto: n}.Label(),
				f.Name)
		}
		body, err := l.body(n, f)
		if err != nil {
			return nil, err
		}
		if body, err = l.nodes(body, append(slices.Clone(open), f)); err != nil {
			return nil, err
		}
		out = append(out, body...)
	}
	return out, nil
}

// body returns the nodes of a function for a node that calls it: with the node's inputs, outputs and
// attributes, and new names for the values between.
func (l *inliner) body(n *onnxpb.NodeProto, f *onnxpb.FunctionProto) ([]*onnxpb.NodeProto, error) {
	c := onnx.Node{NodeProto: n}
	if len(n.Input) > len(f.Input) || len(n.Output) > len(f.Output) {
		return nil, fmt.Errorf("node %s has %d inputs and %d outputs, and the function %d and %d", c.Label(),
			len(n.Input), len(n.Output), len(f.Input), len(f.Output))
	}
	names := map[string]string{}
	for i, v := range f.Input {
		names[v] = c.In(i)
	}
	within := n.Name
	if within == "" && len(n.Output) > 0 {
		within = n.Output[0]
	}
	through := nameOutputs(names, f.Output, n.Output)
	attributes := map[string]*onnxpb.AttributeProto{}
	for _, a := range slices.Concat(f.AttributeProto, n.Attribute) {
		attributes[a.Name] = a
	}
	var body []*onnxpb.NodeProto
	for _, from := range f.Node {
		if l.made++; l.made > mostInlined {
			return nil, fmt.Errorf("the functions of the model stand for more than %d nodes", mostInlined)
		}
		if l.bytes += proto.Size(from); l.bytes > onnx.MaxBytes {
			return nil, fmt.Errorf("the functions of the model stand for more than %d bytes", onnx.MaxBytes)
		}
		to := proto.Clone(from).(*onnxpb.NodeProto)
		if to.Name != "" {
			to.Name = within + "/" + to.Name
		}
		for _, v := range made(to) {
			if _, known := names[v]; !known && v != "" {
				names[v] = l.m.Fresh(within + "/" + v)
			}
		}
		body = append(body, to)
	}
	for _, to := range body {
		renameAll(to, names)
		fill(to, attributes) // last: graphs among them have the caller's names
	}
	return append(body, through...), nil
}

// nameOutputs adds the names that a call gives to the outputs of a function, and returns nodes for inputs
// that are outputs. The call may take fewer outputs than there are.
func nameOutputs(names map[string]string, outputs, called []string) (through []*onnxpb.NodeProto) {
	for i, to := range called {
		if to == "" {
			continue
		}
		if from, taken := names[outputs[i]]; taken {
			through = append(through, onnx.NewNode(to, "Identity", []string{from}, []string{to}))
		} else {
			names[outputs[i]] = to
		}
	}
	return through
}

// fill gives a node, and the nodes inside it, the attributes that they take from the function's call. An
// attribute that isn't given there and has no default is left out.
func fill(n *onnxpb.NodeProto, given map[string]*onnxpb.AttributeProto) {
	n.Attribute = slices.DeleteFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool {
		return a.RefAttrName != "" && given[a.RefAttrName] == nil
	})
	for i, a := range n.Attribute {
		if a.RefAttrName != "" {
			n.Attribute[i] = proto.Clone(given[a.RefAttrName]).(*onnxpb.AttributeProto)
			n.Attribute[i].Name = a.Name
		}
	}
	for _, g := range onnx.Bodies(n) {
		for _, inner := range g.Node {
			fill(inner, given)
		}
	}
}

// made returns the names of the values that a node defines, as outputs or inside it.
func made(n *onnxpb.NodeProto) []string {
	out := slices.Clone(n.Output)
	for _, g := range onnx.Bodies(n) {
		for _, v := range g.Input {
			out = append(out, v.Name)
		}
		for _, t := range g.Initializer {
			out = append(out, t.Name)
		}
		for _, inner := range g.Node {
			out = append(out, made(inner)...)
		}
	}
	return out
}

// renameAll renames the values that a node, and the graphs inside it, read, make or describe.
func renameAll(n *onnxpb.NodeProto, names map[string]string) {
	one := func(v *string) {
		if to, ok := names[*v]; ok {
			*v = to
		}
	}
	for i := range n.Input {
		one(&n.Input[i])
	}
	for i := range n.Output {
		one(&n.Output[i])
	}
	for _, g := range onnx.Bodies(n) {
		for _, v := range slices.Concat(g.Input, g.Output, g.ValueInfo) {
			one(&v.Name)
		}
		for _, t := range g.Initializer {
			one(&t.Name)
		}
		for _, inner := range g.Node {
			renameAll(inner, names)
		}
	}
}
