package lower_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
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
			through := len(in) > 0 && len(in[0].Shape) > 1 && in[0].Shape[len(in[0].Shape)-1] > 1
			if op.Type != "ReduceLogSumExp" && through && !half {
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
					t.Errorf("%s, %s: output %d deviates by %.2g of %.2g", op.Type, ex.Name, k, worst,
						largest)
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
	checkHalf(t, webGPUInFloat16(t), ort.ProviderOf("webgpu"))
}

// half returns the program that classifies two images by a net of the quickstart in float16.
func half(t *testing.T, net string) *lower.Lowered {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	s := modeltest.Source(t, model.ONNXParams{Preset: "half",
		Path: filepath.Join(root, "experiments", "quickstart", net+".onnx")})
	s.Graph = func(batch int) (*onnx.Graph, error) {
		g, _, err := lower.Graph(t.Context(), s, batch)
		return g, err
	}
	p, err := lower.Program(t.Context(), s, 2, lower.Request{Kind: lower.Forward, AnswerOnly: true,
		Inputs: lower.ImagesInput, Images: lower.Images,
		Kernels: ort.ProviderOf("webgpu").KernelsIn(stages.Float16)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkAnswers compares the answers of the quickstart's nets in float16 with those of ONNX's own reference in
// float64, which testdata/float16.py computes. They deviate as much as that reference does with the operands
// and results of products rounded to float16: between a tenth and the given multiple of it.
func checkAnswers(t *testing.T, d stages.Device, most float64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "float16.json"))
	if err != nil {
		t.Fatal(err)
	}
	var nets map[string]struct{ Exact, Float16 []float64 }
	if err := json.Unmarshal(b, &nets); err != nil {
		t.Fatal(err)
	}
	for net, want := range nets {
		draw := func(i int) float32 {
			i -= 7 // of the first input
			return float32(math.Sin(float64(i)*0.01) + math.Sin(float64(i)*0.37))
		}
		p := half(t, net)
		p.Model.SetOutputs(onnx.Value{Name: lower.Answer, Elem: float,
			Shape: []int{2, len(want.Exact) / 2}, Known: true})
		answers := results(t, p.Model, d, draw)[0].Data
		if len(answers) != len(want.Exact) {
			t.Fatalf("%s: %d answers, not %d", net, len(answers), len(want.Exact))
		}
		off, expected := 0., 0.
		for i, v := range answers {
			off += math.Pow(float64(v)-want.Exact[i], 2)
			expected += math.Pow(want.Float16[i]-want.Exact[i], 2)
		}
		ratio := math.Sqrt(off / expected)
		t.Logf("%s: %.2g, %.2g times what the reference deviates by", net, math.Sqrt(off), ratio)
		if !(ratio > 0.1 && ratio < most) {
			t.Errorf("%s deviates by %.2g times what rounding products to float16 explains", net, ratio)
		}
	}
}

// TestHalfPrecisionOfNets holds how much answers deviate, by ONNX Runtime's CPU provider, which computes
// products of float16 in float32.
func TestHalfPrecisionOfNets(t *testing.T) {
	modeltest.Runtime(t)
	checkAnswers(t, stages.Device{Class: "cpu", Threads: 1}, 2)
}

// TestHalfPrecisionOfNetsOnWebGPU holds the same on WebGPU, which rounds sums of products to float16 at each
// addition: of K products by the root of K/3 times as much, which is 9 for 256.
func TestHalfPrecisionOfNetsOnWebGPU(t *testing.T) { checkAnswers(t, webGPUInFloat16(t), 9) }

// TestOverflowOnWebGPU holds that an activation beyond 65504 makes answers that aren't finite, also behind a
// norm: they are noticed. What a Softmax reads is computed in float32.
func TestOverflowOnWebGPU(t *testing.T) {
	d := webGPUInFloat16(t)
	for _, last := range []string{"Relu", "Softmax", "LayerNormalization"} {
		m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: &onnxpb.GraphProto{Name: "g"}}}
		f := m.Fragment()
		x := "x"
		for range 2 {
			x = f.Op("MatMul", []string{x, f.Floats("w", []float32{300, 301, 302, 303}, 2, 2)})
		}
		in := []string{x}
		if last == "LayerNormalization" {
			in = append(in, f.Floats("scale", []float32{1, 2}, 2))
		}
		f.OpTo("y", last, in)
		m.After(f)
		m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: []int{1, 2}, Known: true})
		m.SetOutputs(onnx.Value{Name: "y", Elem: float, Shape: []int{1, 2}, Known: true})
		g, err := onnx.NewGraph(m, map[string]onnx.Type{"x": {Elem: float, Shape: []int{1, 2}}})
		if err != nil {
			t.Fatal(err)
		}
		lower.HalfPrecision(g)
		y := results(t, g.Model, d, nil)[0].Data
		finite := func(v float32) bool { return v-v == 0 }
		if last == "Softmax" && y[0]+y[1] != 1 || last != "Softmax" && slices.ContainsFunc(y, finite) {
			t.Errorf("behind products beyond 65504, %s makes %v", last, y)
		}
	}
}

// webGPUInFloat16 returns the device if it computes in float16.
func webGPUInFloat16(t *testing.T) stages.Device {
	t.Helper()
	if os.Getenv("RUNEXP_WEBGPU") == "" {
		t.Skip("skipped: make test-gpu runs it")
	}
	d := stages.Device{Class: "webgpu", Precision: stages.Float16}
	if err := modeltest.Runtime(t).Has(d); err != nil {
		stagetest.LacksDevice(t, err)
	}
	return d
}

// TestHalfPrecisionOfNodes holds which operators of the quickstart's nets compute in which precision,
// and that no product but the answer's and attention's scores computes in float32.
func TestHalfPrecisionOfNodes(t *testing.T) {
	modeltest.Runtime(t)
	for net, casts := range map[string]int{"vgg": 2, "resnet": 2, "vit": 42} {
		p := half(t, net)
		wellTyped(t, net, p.Graph)
		in := map[string]map[bool]int{}
		for _, h := range p.Halved {
			if in[h.Operator] == nil {
				in[h.Operator] = map[bool]int{}
			}
			in[h.Operator][h.Float16]++
			if h.Why == "" {
				t.Errorf("%s: no reason for %s", net, h.Operator)
			}
		}
		for _, op := range []string{"LayerNormalization", "Softmax", "Erf", "Div", "GlobalAveragePool"} {
			if in[op][true] > 0 {
				t.Errorf("%s: %d nodes %s compute in float16", net, in[op][true], op)
			}
		}
		exact := 1 + in["Softmax"][false] // the answer, and attention's scores
		if products := in["Conv"][false] + in["MatMul"][false] + in["Gemm"][false]; products != exact {
			t.Errorf("%s: %d products compute in float32, not %d", net, products, exact)
		}
		found := 0
		for _, n := range p.Model.Proto.Graph.Node {
			if n.OpType == "Cast" {
				found++
			}
		}
		if found != casts {
			t.Errorf("%s: %d Casts, not %d", net, found, casts)
		}
	}
}

// A wired is a graph of nodes on a value of 2×2 numbers, for the law that no other choice has fewer Casts.
type wired struct {
	ops []string
	in  [][]int // by node: the values that it reads; value 0 is the input, k+1 is node k's
}

// wiredAt draws a graph.
func wiredAt(r *rand.Rand) (w wired) {
	for k := range 4 + r.IntN(7) {
		op := []string{"MatMul", "Sqrt", "Relu", "Add", "Add", "Mul"}[r.IntN(6)]
		in := []int{r.IntN(k + 1)}
		if op == "Add" || op == "Mul" {
			in = append(in, r.IntN(k+1))
		}
		w.ops, w.in = append(w.ops, op), append(w.in, in)
	}
	return w
}

// casts returns how many values are cast where these nodes compute in float16. The last node is the output.
func (w wired) casts(half func(node int) bool) (count int) {
	for v := range len(w.ops) + 1 {
		made := v > 0 && half(v-1)
		differs := v == len(w.ops) && made // an output
		for k, in := range w.in {
			differs = differs || slices.Contains(in, v) && half(k) != made
		}
		if differs {
			count++
		}
	}
	return count
}

// fewest tries every choice, which has products in float16 and Sqrt in float32.
func (w wired) fewest() int {
	best := len(w.ops) + 1
	for set := range 1 << len(w.ops) {
		fits := true
		for k, op := range w.ops {
			in := set>>k&1 == 1
			fits = fits && (in || op != "MatMul") && (!in || op != "Sqrt")
		}
		if fits {
			best = min(best, w.casts(func(k int) bool { return set>>k&1 == 1 }))
		}
	}
	return best
}

// TestFewestCasts compares the pass with all choices of drawn graphs.
func TestFewestCasts(t *testing.T) {
	r := rand.New(rand.NewPCG(36, 5))
	for range 300 {
		w := wiredAt(r)
		m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: &onnxpb.GraphProto{Name: "g"}}}
		name := func(v int) string { return fmt.Sprintf("v%d", v) }
		f := m.Fragment()
		turn := f.Floats("turn", []float32{1, 2, 3, 4}, 2, 2)
		for k, op := range w.ops {
			var in []string
			for _, v := range w.in[k] {
				in = append(in, name(v))
			}
			if op == "MatMul" {
				in = append(in, turn)
			}
			f.OpTo(name(k+1), op, in)
		}
		m.After(f)
		m.SetInputs(onnx.Value{Name: "v0", Elem: float, Shape: []int{2, 2}, Known: true})
		m.SetOutputs(onnx.Value{Name: name(len(w.ops)), Elem: float})
		// Nodes that the output doesn't need have no readers, and cost nothing.
		g, err := onnx.NewGraph(m, map[string]onnx.Type{"v0": {Elem: float, Shape: []int{2, 2}}})
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]bool{}
		for _, h := range lower.HalfPrecision(g) {
			in[h.Node] = h.Float16
		}
		got, want := w.casts(func(k int) bool { return in[name(k+1)] }), w.fewest()
		if got != want {
			t.Errorf("%v: %d Casts, not %d", w, got, want)
		}
		wellTyped(t, fmt.Sprint(w), g)
	}
}

// TestHalfPrecisionOfWeights holds that a product whose weights float16 can't hold computes in float32, as
// does a sum that is written as a product.
func TestHalfPrecisionOfWeights(t *testing.T) {
	for _, c := range []struct {
		weights []float32
		half    bool
	}{
		{[]float32{1, -2, 3, 65504}, true}, {[]float32{1, 2, 3, 65520}, false},
		{[]float32{1, 2, 3, 1e-9}, true}, {[]float32{1e-6, 2e-6, 3e-6, 1.5e-6}, false},
		{[]float32{1, 1, 1, 1}, false}, {[]float32{0, 0, 0, 0}, true},
	} {
		m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: &onnxpb.GraphProto{Name: "g"}}}
		f := m.Fragment()
		f.OpTo("y", "MatMul", []string{"x", f.Floats("w", c.weights, 2, 2)})
		m.After(f)
		m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: []int{2, 2}, Known: true})
		m.SetOutputs(onnx.Value{Name: "y", Elem: float})
		g, err := onnx.NewGraph(m, map[string]onnx.Type{"x": {Elem: float, Shape: []int{2, 2}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := lower.HalfPrecision(g)[0]; got.Float16 != c.half {
			t.Errorf("weights %v: %+v", c.weights, got)
		}
	}
}

// TestHalfTable holds that every operator with a derivative has a row.
func TestHalfTable(t *testing.T) {
	for _, op := range relevance.All() {
		if why := lower.HalfWhy(op.Type); op.Kind != relevance.Opaque && why == "" {
			t.Errorf("%s has no row in half_operators.go", op.Type)
		}
	}
}
