package standalone

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A State is a value that steps hand on, from zeros at first.
type State struct {
	Shape []int
	Elem  onnxpb.TensorProto_DataType // UNDEFINED stands for FLOAT
}

func (s State) elem() onnxpb.TensorProto_DataType {
	return cmp.Or(s.Elem, onnxpb.TensorProto_FLOAT)
}

// Scan emits a step for each of some values, one after the other, so that memory doesn't grow with their
// number, and returns the last states. The values of a step are the parts of each along the first axis, which
// is gone there; step gets them and the states before, and returns the states after.
func (d *Draft) Scan(states []State, each []Single,
	step func(before []string, of []Single) []string) []string {
	body := &onnxpb.GraphProto{Name: "step"}
	var in, before, out []string
	for _, s := range states {
		name := d.Fresh("runexp_before")
		before = append(before, name)
		body.Input = append(body.Input, typed(name, s.elem(), s.Shape))
		in = append(in, d.Op("Expand", []string{d.zero(s), d.Shape(s.Shape...)}))
		out = append(out, d.Fresh("runexp_of_all_steps"))
	}
	var of []Single
	for _, v := range each {
		one := Single{d.Fresh("runexp_of_step"), v.Shape[1:]}
		of, in = append(of, one), append(in, v.Name)
		body.Input = append(body.Input, typed(one.Name, onnxpb.TensorProto_FLOAT, one.Shape))
	}

	outer := d.Proto.Graph.Node
	d.Proto.Graph.Node = nil
	for i, v := range step(before, of) {
		after := d.Op("Identity", []string{v})
		body.Output = append(body.Output, typed(after, states[i].elem(), states[i].Shape))
	}
	inner := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Node: d.Proto.Graph.Node,
		Output: body.Output}}}
	inner.Prune()
	body.Node, d.Proto.Graph.Node = inner.Proto.Graph.Node, outer

	n := onnx.NewNode(out[0], "Scan", in, out, onnx.Attr{Name: "num_scan_inputs", Value: len(each)})
	n.Attribute = append(n.Attribute,
		&onnxpb.AttributeProto{Name: "body", Type: onnxpb.AttributeProto_GRAPH, G: body})
	d.Proto.Graph.Node = append(d.Proto.Graph.Node, n)
	return out
}

// typed returns the declaration of a value.
func typed(name string, elem onnxpb.TensorProto_DataType, shape []int) *onnxpb.ValueInfoProto {
	m := onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{}}}
	m.SetInputs(onnx.Value{Name: name, Elem: elem, Shape: shape, Known: true})
	return m.Proto.Graph.Input[0]
}

func (d *Draft) zero(s State) string {
	return d.Op("Cast", []string{d.Singles([]float32{0})}, to(s.elem()))
}

// Enclose moves the weights that only the steps of a scan read into its graph: ONNX Runtime optimises nodes
// with weights of their own graph as it does in any model, so that they give the same bits.
func Enclose(m *onnx.Model) {
	g := m.Proto.Graph
	readers := map[string]int{}
	for _, n := range g.Node {
		taken := onnx.Taken(n)
		slices.Sort(taken)
		for _, v := range slices.Compact(taken) {
			readers[v]++
		}
	}
	for _, v := range g.Output {
		readers[v.Name]++
	}
	for _, n := range g.Node {
		for _, body := range onnx.Bodies(n) {
			read := map[string]bool{}
			for _, inner := range body.Node {
				for _, v := range onnx.Taken(inner) {
					read[v] = true
				}
			}
			g.Initializer = slices.DeleteFunc(g.Initializer, func(t *onnxpb.TensorProto) bool {
				moves := read[t.Name] && readers[t.Name] == 1 && !slices.Contains(n.Input, t.Name)
				if moves {
					body.Initializer = append(body.Initializer, t)
				}
				return moves
			})
		}
	}
}
