package lower_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/ort"
)

const float = onnxpb.TensorProto_FLOAT

// between returns the graph of an operator's example between products with the identity, which float16
// computes in, and the names and shapes of its inputs and outputs. Inputs that the example doesn't give are
// the graph's.
func between(t *testing.T, op *relevance.Op, ex relevance.Example) (g *onnx.Graph, in, out []onnx.Value) {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: relevance.Opset}},
		Graph:       &onnxpb.GraphProto{Name: "g"}}}
	f := m.Fragment()
	through := func(v string, shape []int) string {
		if len(shape) == 0 || shape[len(shape)-1] < 2 {
			return v
		}
		n := shape[len(shape)-1]
		eye := make([]float32, n*n)
		for i := range n {
			eye[i*n+i] = 1
		}
		return f.Op("MatMul", []string{v, f.Floats("eye", eye, int64(n), int64(n))})
	}
	var names []string
	count := len(ex.Inputs)
	for i := range ex.Consts {
		count = max(count, i+1)
	}
	for i := range count {
		name := fmt.Sprintf("x%d", i)
		switch c := ex.Consts[i]; {
		case c != nil:
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, given(t, name, c))
		case i >= len(ex.Inputs) || ex.Inputs[i] == nil:
			name = ""
		case op.Role(i) == relevance.Data || slices.Contains(ex.Flow, i):
			in = append(in, onnx.Value{Name: name, Elem: float, Shape: ex.Inputs[i], Known: true})
			name = through(name, ex.Inputs[i])
		default:
			r := rand.New(rand.NewPCG(uint64(i), 1))
			v := make([]float32, onnx.Size(ex.Inputs[i]))
			for k := range v {
				v[k] = float32(4+r.IntN(29)) / 16
			}
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
				onnx.FloatTensor(name, v, ex.Inputs[i]...))
		}
		names = append(names, name)
	}
	var outs []string
	for k := range max(1, ex.Outputs) {
		outs = append(outs, fmt.Sprintf("y%d", k))
	}
	if op.Type == "TopK" {
		outs = append(outs, "places")
	}
	m.After(f)
	m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode("node", op.Type, names, outs, ex.Attrs...))
	m.SetInputs(in...)
	for k := range max(1, ex.Outputs) {
		out = append(out, onnx.Value{Name: outs[k], Elem: float})
	}
	m.SetOutputs(out...)
	shapes := measured(t, m)
	tail := m.Fragment()
	f = tail
	for k := range out {
		out[k].Name, out[k].Shape, out[k].Known = through(outs[k], shapes[k]), shapes[k], true
	}
	m.After(tail)
	m.SetOutputs(out...)
	types := map[string]onnx.Type{}
	for _, v := range in {
		types[v.Name] = onnx.Type{Elem: float, Shape: v.Shape}
	}
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g, in, out
}

// given returns an example's constant.
func given(t *testing.T, name string, v any) *onnxpb.TensorProto {
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
		w := given(t, name, []bool{v})
		w.Dims = nil
		return w
	case []bool:
		w := &onnxpb.TensorProto{Name: name, DataType: int32(onnxpb.TensorProto_BOOL),
			Dims: []int64{int64(len(v))}}
		for _, b := range v {
			w.RawData = append(w.RawData, map[bool]byte{true: 1}[b])
		}
		return w
	case *onnxpb.TensorProto:
		return onnx.Renamed(v, name)
	}
	t.Fatalf("a constant of type %T", v)
	return nil
}

// measured returns the shapes of a model's outputs.
func measured(t *testing.T, m *onnx.Model) (shapes [][]int) {
	t.Helper()
	for _, r := range results(t, m, stages.Device{Class: "cpu", Threads: 1}, nil) {
		shapes = append(shapes, r.Shape)
	}
	return shapes
}

// results returns what a model computes from the numbers that draw gives.
func results(t *testing.T, m *onnx.Model, d stages.Device, draw func(i int) float32) []ort.Result[float32] {
	t.Helper()
	r := modeltest.Runtime(t)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var in, out []string
	var x []ort.Value
	for _, v := range m.Inputs() {
		in = append(in, v.Name)
		from, err := ort.NewTensor[float32](r, v.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		for i := range from.Data {
			if draw == nil {
				from.Data[i] = 1
			} else {
				from.Data[i] = draw(i + 7*len(in))
			}
		}
		x = append(x, from)
	}
	for _, v := range m.Outputs() {
		out = append(out, v.Name)
	}
	s, err := r.NewSession(b, in, out, d)
	if err != nil {
		t.Fatalf("%v\n%v", err, m.Proto.Graph.Node)
	}
	defer s.Close()
	if d.Class == "cpu" {
		got, err := ort.Fetch[float32](t.Context(), s, x)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	var to []ort.Value
	var got []ort.Result[float32]
	for _, v := range m.Outputs() {
		y, err := ort.NewTensor[float32](r, v.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		defer y.Close()
		to = append(to, y)
		got = append(got, ort.Result[float32]{Data: y.Data, Shape: v.Shape})
	}
	if err := s.Run(t.Context(), x, to); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Data = slices.Clone(got[i].Data)
	}
	return got
}

// checkHalf computes every example of every operator in float16 on a device, and in float32 on the processor.
func checkHalf(t *testing.T, d stages.Device, p *ort.Provider) {
	t.Helper()
	for _, op := range relevance.All() {
		if p != nil && slices.Contains(p.Wrong, op.Type) {
			continue
		}
		for _, ex := range op.Examples {
			g, in, out := between(t, op, ex)
			draw := ex.Draw
			if draw == nil {
				draw = func(i int) float32 { return float32(4+i*389%29) / 16 * float32(1-2*(i*7%3%2)) }
			}
			want := results(t, g.Model, stages.Device{Class: "cpu", Threads: 1}, draw)
			list := lower.HalfPrecision(g)
			wellTyped(t, op.Type+", "+ex.Name, g)
			half := slices.ContainsFunc(list, func(h lower.Halved) bool { return h.Float16 })
			if len(in) > 0 && len(in[0].Shape) > 1 && in[0].Shape[len(in[0].Shape)-1] > 1 && !half {
				t.Errorf("%s, %s: nothing is computed in float16", op.Type, ex.Name)
			}
			g.Model.SetOutputs(out...)
			got := results(t, g.Model, d, draw)
			for k := range out {
				worst, largest := 0., 1.
				for i, v := range got[k].Data {
					worst = max(worst, math.Abs(float64(v-want[k].Data[i])))
					largest = max(largest, math.Abs(float64(want[k].Data[i])))
				}
				if !(worst <= largest/128) {
					t.Errorf("%s, %s: output %d deviates by %.2g of %.2g", op.Type, ex.Name, k, worst, largest)
				}
			}
		}
	}
}

// wellTyped checks that all numbers that a node reads have one type, but for the node's that casts, and that
// no value is cast twice.
func wellTyped(t *testing.T, name string, g *onnx.Graph) {
	t.Helper()
	cast := map[string]bool{}
	for _, p := range g.Proto.Graph.Node {
		if p.OpType == "Cast" {
			if cast[p.Input[0]] {
				t.Errorf("%s: %s is cast twice, or there and back", name, p.Input[0])
			}
			cast[p.Input[0]], cast[p.Output[0]] = true, true
			continue
		}
		seen := map[onnxpb.TensorProto_DataType]bool{}
		for _, v := range p.Input {
			if e := g.Types[v].Elem; e == float || e == onnxpb.TensorProto_FLOAT16 {
				seen[e] = true
			}
		}
		if len(seen) > 1 {
			t.Errorf("%s: %s reads both types", name, p.OpType)
		}
	}
}

// TestHalfPrecisionOfOperators holds the pass on every operator that the compiler knows: ONNX Runtime takes
// the model, and computes the same up to rounding.
func TestHalfPrecisionOfOperators(t *testing.T) {
	modeltest.Runtime(t)
	checkHalf(t, stages.Device{Class: "cpu", Threads: 1}, nil)
}

// TestHalfPrecisionOfOperatorsOnWebGPU holds the same on WebGPU.
func TestHalfPrecisionOfOperatorsOnWebGPU(t *testing.T) {
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	d := stages.Device{Class: "webgpu"}
	checkHalf(t, d, ort.ProviderOf("webgpu"))
}
