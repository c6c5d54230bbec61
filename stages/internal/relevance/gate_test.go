package relevance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TestGates checks that a factor computed from a Sigmoid or a Softmax is a gate, so that the other factor
// gets all relevance, with each operator's examples in between. Layers with weights end that for Sigmoids,
// and an operand not computed from such a function ends it for both. A length is a gate whatever it is of.
func TestGates(t *testing.T) {
	library(t)
	tried := 0
	squashing := []string{"Sigmoid", "HardSigmoid", "Softmax"}
	for _, op := range All() {
		if op.Kind == Opaque {
			continue
		}
		for _, ex := range op.Examples {
			b, err := prepare(t, op, ex, Policy{}, 1)
			if err != nil {
				t.Fatalf("%s: %v", op.Type, err)
			}
			b.close()
			for _, squash := range squashing {
				for raw := -1; raw < len(b.flows); raw++ {
					name := fmt.Sprintf("%s %s %s, raw %d", squash, op.Type, ex.Name, raw)
					g, weights := gated(t, op, ex, b, squash, raw)
					rel, err := Backward(g, map[Value]Value{"product": "seed"}, []Value{"other", "x"},
						composite(nil))
					gate := raw < 0 && (!weights || squash == "Softmax") ||
						slices.Contains(squashing, op.Type) || op.Type == "ReduceL1" || op.Type == "ReduceL2"
					if err != nil && !gate && strings.Contains(err.Error(), "no rule for") {
						continue // other products may be errors
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
						continue
					}
					tried++
					if got := rel["other"] == "seed" && rel["x"] == ""; got != gate {
						t.Errorf("%s: it is a gate: %t, want %t", name, got, gate)
					}
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("%d cases", tried)
	}
}

// gated returns a graph with the input x and another called other: its output is the product of other and an
// example, whose values are squashed except for raw. It reports whether the example is a layer with weights.
func gated(t *testing.T, op *Op, ex Example, b *bench, squash string, raw int) (*onnx.Graph, bool) {
	t.Helper()
	m, flows := model(t, op, ex)
	node := m.Proto.Graph.Node[0]
	types := map[string]onnx.Type{"other": {Elem: float, Shape: b.shapes[0]},
		"seed": {Elem: float, Shape: b.shapes[0]}, "product": {Elem: float, Shape: b.shapes[0]}}
	inputs := []onnx.Value{{Name: "other", Elem: float, Shape: b.shapes[0], Known: true},
		{Name: "seed", Elem: float, Shape: b.shapes[0], Known: true}}
	total := 0
	for k, i := range flows {
		total += size(b.in[k])
		types[node.Input[i]] = onnx.Type{Elem: float, Shape: b.in[k]}
	}
	types["x"] = onnx.Type{Elem: float, Shape: []int{total}}
	inputs = append(inputs, onnx.Value{Name: "x", Elem: float, Shape: []int{total}, Known: true})
	var nodes []*onnxNode
	from := 0
	for k, i := range flows {
		v, n := node.Input[i], size(b.in[k])
		whole, part := fmt.Sprintf("part%d", k), fmt.Sprintf("raw%d", k)
		bounds := func(name string, d int) string {
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
				onnx.IntTensor(name, []int64{int64(d)}, 1))
			return name
		}
		types[whole], types[part] = onnx.Type{Elem: float, Shape: []int{n}}, types[v]
		nodes = append(nodes,
			onnx.NewNode(whole, "Slice",
				[]string{"x", bounds(whole+"from", from), bounds(whole+"to", from+n)}, []string{whole}))
		shape := onnx.IntTensor(whole+"shape", longs(b.in[k]), len(b.in[k]))
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, shape)
		nodes = append(nodes, onnx.NewNode(part, "Reshape", []string{whole, shape.Name}, []string{part}))
		between := squash
		if k == raw {
			between = "Identity"
		}
		nodes = append(nodes, onnx.NewNode(v, between, []string{part}, []string{v}))
		from += n
	}
	for i := range node.Output {
		types[node.Output[i]] = onnx.Type{Elem: float}
		if i < len(b.shapes) {
			types[node.Output[i]] = onnx.Type{Elem: float, Shape: b.shapes[i]}
		}
	}
	m.Proto.Graph.Node = append(append(nodes, node),
		onnx.NewNode("product", "Mul", []string{"other", node.Output[0]}, []string{"product"}))
	m.SetInputs(inputs...)
	m.SetOutputs(onnx.Value{Name: "product", Elem: float})
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g, weighted(newBuilder(g), op, onnx.Node{NodeProto: node})
}
