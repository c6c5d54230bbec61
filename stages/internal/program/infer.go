package program

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/ort"
)

// infer returns the types of a model's input and of all that its nodes make. What
// ONNX Runtime can't tell from the graph it tells by running it; measured says that it
// had to.
func (n *Net) infer(ctx context.Context, m *onnx.Model, batch int) (types map[string]onnx.Type, measured bool, err error) {
	runtime, err := ort.Warily()
	if err != nil {
		return nil, false, err
	}
	defer runtime.Close()
	types = map[string]onnx.Type{n.Input: {Elem: onnxpb.TensorProto_FLOAT, Shape: n.inputShape(batch)}}
	light := exposed(m)
	lighten(light, meaningless)
	b, err := light.Encode()
	if err != nil {
		return nil, false, err
	}
	infos, err := runtime.Outputs(b)
	if err != nil {
		return nil, false, err
	}
	var unclear []string
	for _, v := range infos {
		if v.Elem == 0 {
			continue // not a tensor
		}
		types[v.Name] = onnx.Type{Elem: onnxpb.TensorProto_DataType(v.Elem), Shape: v.Dims}
		// Scalars and values of unknown rank look alike.
		if len(v.Dims) == 0 || slices.ContainsFunc(v.Dims, func(d int) bool { return d < 0 }) {
			unclear = append(unclear, v.Name)
		}
	}
	if unclear == nil {
		return types, false, nil
	}
	shapes, err := n.measure(ctx, runtime, exposed(m), unclear, batch)
	if err != nil {
		return nil, false, fmt.Errorf("the shapes of the model's values: %w", err)
	}
	for i, name := range unclear {
		measured = measured || len(shapes[i]) > 0
		types[name] = onnx.Type{Elem: types[name].Elem, Shape: shapes[i]}
	}
	return types, measured, nil
}

// exposed returns a model whose outputs are all that the nodes of m make. Nothing
// is said of their types.
func exposed(m *onnx.Model) *onnx.Model {
	g := m.Proto.Graph
	all := &onnxpb.GraphProto{Name: g.Name, Node: g.Node, Initializer: g.Initializer, Input: g.Input}
	for _, node := range g.Node {
		for _, v := range node.Output {
			if v != "" {
				all.Output = append(all.Output, &onnxpb.ValueInfoProto{Name: v})
			}
		}
	}
	return &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: m.Proto.IrVersion, OpsetImport: m.Proto.OpsetImport, Graph: all}}
}

// measure runs a model on zeros and returns the shapes of some of its values.
func (n *Net) measure(ctx context.Context, runtime *ort.Runtime, m *onnx.Model, names []string, batch int) ([][]int, error) {
	// The library can't hand out a shape without dimensions, but one number more
	// behind it.
	f := m.Fragment()
	end := f.Ints("end", []int64{1}, 1)
	outputs := make([]onnx.Value, len(names))
	ask := make([]string, len(names))
	for i, name := range names {
		ask[i] = f.Op("Concat", []string{f.Op("Shape", []string{name}), end}, onnx.Attr{Name: "axis", Value: 0})
		outputs[i] = onnx.Value{Name: ask[i], Elem: onnxpb.TensorProto_INT64}
	}
	m.After(f)
	m.SetOutputs(outputs...)
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	s, err := runtime.NewSession(b, []string{n.Input}, ask, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	in, err := ort.NewTensor[float32](runtime, n.inputShape(batch)...)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	got, err := ort.Fetch[int64](ctx, s, []ort.Value{in})
	if err != nil {
		return nil, err
	}
	shapes := make([][]int, len(got))
	for i, v := range got {
		shapes[i] = make([]int, len(v.Data)-1)
		for k := range shapes[i] {
			shapes[i][k] = int(v.Data[k])
		}
	}
	return shapes, nil
}
