package lower

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

// simplify makes ONNX Runtime fold constants and remove nodes without effect.
func (u *unit) simplify() (err error) {
	u.model, err = optimise(u.model)
	return err
}

// optimise returns the result of [ort.Runtime.Simplify] for a model; m must not be used any more.
func optimise(m *onnx.Model) (*onnx.Model, error) { return optimiseDetached(m, multipliers(m, large)) }

// optimiseDetached optimises with these weights detached, which is valid only if no optimisation reads
// them.
func optimiseDetached(m *onnx.Model, detach func(*onnxpb.TensorProto) bool) (*onnx.Model, error) {
	inputs := m.Inputs()
	disabled := wrongFusions(m.Proto)
	nodes, weights := m.Proto.Graph.Node, m.Proto.Graph.Initializer
	source := *m
	detached := detachWeights(m, detach)
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	runtime, err := ort.Isolated()
	if err != nil {
		return nil, err
	}
	defer runtime.Close()
	if b, err = runtime.Simplify(b, disabled...); err != nil {
		return nil, err
	}
	if m, err = onnx.Parse(b); err != nil {
		return nil, err
	}
	m.SetInputs(inputs...)
	m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, detached...)
	m.Prune()
	m.Computed = computed(m, &source, nodes, weights)
	before := map[string]bool{}
	for _, t := range weights {
		before[t.Name] = true
	}
	for _, n := range nodes {
		for _, v := range n.Output {
			before[v] = true
		}
	}
	rename(m, func(t *onnxpb.TensorProto) bool { return !before[t.Name] })
	return m, nil
}

// computed returns the digests of the expressions from which ONNX Runtime has computed the weights of m,
// given the source of m with its nodes and weights.
func computed(m, source *onnx.Model, nodes []*onnxpb.NodeProto,
	weights []*onnxpb.TensorProto) map[string]onnx.Sum {
	given, made := map[string]*onnxpb.TensorProto{}, map[string]bool{}
	for _, t := range weights {
		given[t.Name] = t
	}
	for _, n := range nodes {
		for _, v := range n.Output {
			made[v] = true
		}
	}
	x := onnx.NewExpressions(nodes, func(v string) onnx.Sum {
		if t := given[v]; t != nil {
			return source.WeightSum(t)
		}
		return onnx.SumOf([]byte("input"), fmt.Append(nil, m.Inputs()))
	})
	out := map[string]onnx.Sum{}
	for _, t := range m.Proto.Graph.Initializer {
		switch s, before := source.Computed[t.Name]; {
		case before:
			out[t.Name] = s
		case given[t.Name] != nil:
		case made[t.Name]:
			out[t.Name] = x.Value(t.Name)
		case onnx.Exact(t):
		default:
			// A weight of a fusion, computed from the fused nodes.
			parts := [][]byte{[]byte("fused"), []byte(t.Name)}
			for _, v := range m.Outputs() {
				s := x.Value(v.Name)
				parts = append(parts, s[:])
			}
			out[t.Name] = onnx.SumOf(parts...)
		}
	}
	return out
}
