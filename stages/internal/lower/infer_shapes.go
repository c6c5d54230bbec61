package lower

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

// inferShapes infers the types of the model's input and of all values of its nodes. If ONNX Runtime can't
// infer a type from the graph, it runs the graph.
func (u *unit) inferShapes() error {
	runtime, err := ort.Isolated()
	if err != nil {
		return err
	}
	defer runtime.Close()
	u.measured = false
	types := map[string]onnx.Type{u.Input: {Elem: onnxpb.TensorProto_FLOAT, Shape: u.inputShape()}}
	u.types = types
	light := exposed(u.model)
	detachWeights(light, untyping)
	b, err := light.Encode()
	if err != nil {
		return err
	}
	infos, err := runtime.Outputs(b)
	if err != nil {
		return err
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
		return nil
	}
	shapes, err := u.measure(runtime, exposed(u.model), unclear)
	if err != nil {
		return fmt.Errorf("the shapes of the model's values: %w", err)
	}
	for i, name := range unclear {
		u.measured = u.measured || len(shapes[i]) > 0
		types[name] = onnx.Type{Elem: types[name].Elem, Shape: shapes[i]}
	}
	return nil
}

// exposed returns a model whose outputs are all values of m's nodes, without types.
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
	return &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: m.Proto.IrVersion,
		OpsetImport: m.Proto.OpsetImport, Graph: all}}
}

// measure runs a model on zeros and returns the shapes of some of its values.
func (u *unit) measure(runtime *ort.Runtime, m *onnx.Model, names []string) ([][]int, error) {
	// The library can't return a shape without dimensions, but one with a number appended.
	f := m.Fragment()
	end := f.Ints("end", []int64{1}, 1)
	outputs := make([]onnx.Value, len(names))
	shapesOf := make([]string, len(names))
	for i, name := range names {
		shapesOf[i] = f.Op("Concat", []string{f.Op("Shape", []string{name}), end},
			onnx.Attr{Name: "axis", Value: 0})
		outputs[i] = onnx.Value{Name: shapesOf[i], Elem: onnxpb.TensorProto_INT64}
	}
	m.After(f)
	m.SetOutputs(outputs...)
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	s, err := runtime.NewSession(b, []string{u.Input}, shapesOf, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	in, err := ort.NewTensor[float32](runtime, u.inputShape()...)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	results, err := ort.Fetch[int64](u.ctx, s, []ort.Value{in})
	if err != nil {
		return nil, err
	}
	shapes := make([][]int, len(results))
	for i, v := range results {
		shapes[i] = make([]int, len(v.Data)-1)
		for k := range shapes[i] {
			shapes[i][k] = int(v.Data[k])
		}
	}
	return shapes, nil
}
