package relevance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// library opens ONNX Runtime, or skips the test as [stagetest.Lacks] does.
func library(t testing.TB) *ort.Runtime {
	t.Helper()
	r, err := ort.Default()
	if err != nil {
		stagetest.Lacks(t, err.Error())
	}
	return r
}

const float = onnxpb.TensorProto_FLOAT

// A bench runs an example and its backward pass.
type bench struct {
	r       *ort.Runtime
	shapes  [][]int // of the outputs
	flows   []int   // indices of the inputs that are fed
	in      [][]int // their shapes
	model   []byte
	session *ort.Session
	back    []bool // for each fed input, whether it gets a cotangent
}

func inputName(i int) string  { return fmt.Sprintf("x%d", i) }
func outputName(i int) string { return fmt.Sprintf("y%d", i) }
func cotangent(i int) string  { return fmt.Sprintf("u%d", i) }

// model returns the one-node model of an example, without the types of its outputs.
func model(t testing.TB, op *Op, ex Example) (*onnx.Model, []int) {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: Opset}},
		Graph: &onnxpb.GraphProto{Name: "g"},
	}}
	count := len(ex.Inputs)
	for i := range ex.Consts {
		count = max(count, i+1)
	}
	in := make([]string, count)
	var flows []int
	var values []onnx.Value
	for i := range in {
		switch {
		case ex.Consts[i] != nil:
			in[i] = inputName(i)
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, constant(t, in[i], ex.Consts[i]))
		case i >= len(ex.Inputs) || ex.Inputs[i] == nil:
		case ex.Flow == nil && op.Role(i) == Data || slices.Contains(ex.Flow, i):
			in[i] = inputName(i)
			flows = append(flows, i)
			values = append(values, onnx.Value{Name: in[i], Elem: float, Shape: ex.Inputs[i], Known: true})
		default:
			in[i] = inputName(i)
			v := noise(rand.New(rand.NewPCG(uint64(i), 1)), size(ex.Inputs[i]))
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
				onnx.FloatTensor(in[i], v, ex.Inputs[i]...))
		}
	}
	var out []string
	var outputs []onnx.Value
	for i := range max(1, ex.Outputs) {
		out = append(out, outputName(i))
		outputs = append(outputs, onnx.Value{Name: out[i], Elem: float})
	}
	if op.Type == "TopK" { // its second output, the indices, can't be omitted
		out = append(out, "places")
	}
	m.Proto.Graph.Node = []*onnxpb.NodeProto{onnx.NewNode("node", op.Type, in, out, ex.Attrs...)}
	m.SetInputs(values...)
	m.SetOutputs(outputs...)
	return m, flows
}

func constant(t testing.TB, name string, v any) *onnxpb.TensorProto {
	t.Helper()
	switch v := v.(type) {
	case int64:
		return onnx.IntTensor(name, []int64{v})
	case []int64:
		return onnx.IntTensor(name, v, len(v))
	case float32:
		return onnx.FloatTensor(name, []float32{v})
	case []float32:
		return onnx.FloatTensor(name, v, len(v))
	case bool:
		return &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_BOOL), RawData: flags(v)}
	case []bool:
		return &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_BOOL),
			Dims: []int64{int64(len(v))}, RawData: flags(v...)}
	case *onnxpb.TensorProto:
		return &onnxpb.TensorProto{Name: name, DataType: v.DataType, Dims: v.Dims, RawData: v.RawData}
	}
	t.Fatalf("a constant of type %T", v)
	return nil
}

func flags(v ...bool) []byte {
	out := make([]byte, len(v))
	for i, x := range v {
		if x {
			out[i] = 1
		}
	}
	return out
}

// noise returns multiples of 1/16 with magnitudes from 1/4 to 2: sums of their products are exact in float32,
// so that rounding doesn't affect the test.
func noise(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(4+r.IntN(29)) / 16
		if r.IntN(2) == 0 {
			v[i] = -v[i]
		}
	}
	return v
}

// prepare builds the session of an example and of its backward pass by p.
func prepare(t testing.TB, op *Op, ex Example, p Policy, threads int) (*bench, error) {
	t.Helper()
	return prepareOn(t, op, ex, p, stages.Device{Class: "cpu", Threads: threads}, Without{})
}

// prepareOn does the same on any device.
func prepareOn(t testing.TB, op *Op, ex Example, p Policy, device stages.Device, w Without) (*bench, error) {
	t.Helper()
	r, err := ort.Default()
	if err != nil {
		stagetest.Lacks(t, err.Error())
	}
	b := &bench{r: r}
	m, flows := model(t, op, ex)
	b.flows = flows
	var feeds []ort.Value
	var names, outputs []string
	types := map[string]onnx.Type{}
	for _, i := range flows {
		b.in = append(b.in, ex.Inputs[i])
		x, err := ort.NewTensor[float32](b.r, ex.Inputs[i]...)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		copy(x.Data, ex.draw(i, size(ex.Inputs[i])))
		feeds = append(feeds, x)
		names = append(names, inputName(i))
		types[inputName(i)] = onnx.Type{Elem: float, Shape: ex.Inputs[i]}
	}
	for i := range max(1, ex.Outputs) {
		outputs = append(outputs, outputName(i))
	}
	b.model, err = m.Encode()
	if err != nil {
		return nil, err
	}
	forward, err := b.r.NewSession(b.model, names, outputs, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		return nil, err
	}
	defer forward.Close()
	results, err := ort.Fetch[float32](context.Background(), forward, feeds)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		b.shapes = append(b.shapes, r.Shape)
	}
	seeds := map[Value]Value{}
	inputs := m.Inputs()
	var outs []onnx.Value
	for i, s := range b.shapes {
		types[outputName(i)] = onnx.Type{Elem: float, Shape: s}
		types[cotangent(i)] = onnx.Type{Elem: float, Shape: s}
		seeds[outputName(i)] = cotangent(i)
		inputs = append(inputs, onnx.Value{Name: cotangent(i), Elem: float, Shape: s, Known: true})
		outs = append(outs, onnx.Value{Name: outputName(i), Elem: float})
	}
	wrt := slices.Clone(names)
	m.SetInputs(inputs...)
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := w.Backward(g, seeds, wrt, p)
	if err != nil {
		return nil, err
	}
	for i := range b.shapes {
		names = append(names, cotangent(i))
	}
	for _, x := range wrt {
		b.back = append(b.back, rel[x] != "")
		if rel[x] != "" {
			outputs = append(outputs, "out"+x)
			m.Proto.Graph.Node = append(m.Proto.Graph.Node,
				onnx.NewNode("out"+x, "Identity", []string{rel[x]}, []string{"out" + x}))
			outs = append(outs, onnx.Value{Name: "out" + x, Elem: float})
		}
	}
	m.SetOutputs(outs...)
	m.Prune()
	if b.model, err = m.Encode(); err != nil {
		return nil, err
	}
	b.session, err = b.r.NewSession(b.model, names, outputs, device)
	return b, err
}

func (b *bench) close() { b.session.Close() }

// run returns the outputs for the inputs x, and the inputs' cotangents for the cotangents u, nil for inputs
// without one.
func (b *bench) run(t testing.TB, x, u [][]float32) (y, back [][]float32) {
	t.Helper()
	y, back, err := b.try(t, x, u)
	if err != nil {
		t.Fatal(err)
	}
	return y, back
}

// try does the same, and returns the error of a run.
func (b *bench) try(t testing.TB, x, u [][]float32) (y, back [][]float32, err error) {
	t.Helper()
	var in, out []ort.Value
	feed := func(shape []int, v []float32) {
		f, err := ort.NewTensor[float32](b.r, shape...)
		if err != nil {
			t.Fatal(err)
		}
		copy(f.Data, v)
		in = append(in, f)
	}
	fetch := func(shape []int) []float32 {
		f, err := ort.NewTensor[float32](b.r, shape...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
		return f.Data
	}
	for i := range b.in {
		feed(b.in[i], x[i])
	}
	for i, s := range b.shapes {
		feed(s, u[i])
		y = append(y, fetch(s))
	}
	for i, some := range b.back {
		if some {
			back = append(back, fetch(b.in[i]))
		} else {
			back = append(back, nil)
		}
	}
	err = b.session.Run(context.Background(), in, out)
	for i := range y {
		y[i] = slices.Clone(y[i])
	}
	for i := range back {
		back[i] = slices.Clone(back[i])
	}
	for _, v := range slices.Concat(in, out) {
		v.Close()
	}
	return y, back, err
}

// draw returns the elements of input i.
func (ex Example) draw(i, n int) []float32 {
	if ex.Draw == nil {
		return noise(rand.New(rand.NewPCG(uint64(i), uint64(n))), n)
	}
	v := make([]float32, n)
	for k := range v {
		v[k] = ex.Draw(i*1000 + k)
	}
	return v
}

func dot(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func norm(a []float32) float64 { return math.Sqrt(dot(a, a)) }
