package relevance

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/ort"
)

// small returns the graph of a net of two layers with a Relu and a pool in between.
func small(t *testing.T) *onnx.Graph {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3))
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: Opset}},
		Graph: &onnxpb.GraphProto{Name: "g"},
	}}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: []int{2, 3, 6, 6}, Known: true},
		onnx.Value{Name: "seed", Elem: float, Shape: []int{2, 5}, Known: true})
	m.SetOutputs(onnx.Value{Name: "y", Elem: float})
	m.Proto.Graph.Initializer = []*onnxpb.TensorProto{
		onnx.FloatTensor("w", noise(r, 4*27), 4, 3, 3, 3), onnx.FloatTensor("b", noise(r, 4), 4),
		onnx.FloatTensor("v", noise(r, 5*16), 5, 16), onnx.FloatTensor("c", noise(r, 5), 5),
	}
	types := map[string]onnx.Type{"x": {Elem: float, Shape: []int{2, 3, 6, 6}},
		"seed": {Elem: float, Shape: []int{2, 5}}}
	add := func(op, out string, shape []int, in []string, attrs ...onnx.Attr) {
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode(out, op, in, []string{out}, attrs...))
		types[out] = onnx.Type{Elem: float, Shape: shape}
	}
	add("Conv", "conv", []int{2, 4, 4, 4}, []string{"x", "w", "b"})
	add("Relu", "relu", []int{2, 4, 4, 4}, []string{"conv"})
	add("MaxPool", "pool", []int{2, 4, 2, 2}, []string{"relu"},
		onnx.Attr{Name: "kernel_shape", Value: []int64{2, 2}},
		onnx.Attr{Name: "strides", Value: []int64{2, 2}})
	add("Flatten", "flat", []int{2, 16}, []string{"pool"})
	add("Gemm", "y", []int{2, 5}, []string{"flat", "v", "c"}, onnx.Attr{Name: "transB", Value: 1})
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestHalves checks that omitting the negative parts of non-negative data changes no bit, and halves the
// copies of a layer.
func TestHalves(t *testing.T) {
	runtime := library(t)
	for _, tt := range []struct {
		rule LayerRule
		want []int // MatMuls with both parts, and with one; the γ-rule reads the layer's own output
	}{{ZPlus(1e-6), []int{4, 2}}, {AlphaBeta(2, 1, 1e-6), []int{8, 4}}, {Gamma(0.25, 1e-6), []int{9, 5}}} {
		rule := tt.rule
		p := LRP{Conv: rule, Dense: rule, Stabiliser: 1e-6, Bias: true, Norm: NormFolded,
			Gates: GatesConstant}.Policy()
		var copies []int
		var results [][]float32
		for _, both := range []bool{true, false} {
			g := small(t)
			b := newBuilder(g)
			b.bothHalves = both
			rel, err := b.backward(map[Value]Value{"y": "seed"}, []Value{"x"}, p)
			if err != nil {
				t.Fatal(err)
			}
			g.SetOutputs(onnx.Value{Name: rel["x"], Elem: float})
			g.Prune()
			count := 0
			for _, n := range g.Proto.Graph.Node {
				if n.OpType == "Gemm" {
					count++
				}
			}
			copies = append(copies, count)
			bytes, err := g.Encode()
			if err != nil {
				t.Fatal(err)
			}
			s, err := runtime.NewSession(bytes, []string{"x", "seed"}, []string{rel["x"]},
				stages.Device{Class: "cpu", Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			feed := func(seed uint64, shape ...int) *ort.Tensor[float32] {
				x, err := ort.NewTensor[float32](runtime, shape...)
				if err != nil {
					t.Fatal(err)
				}
				r := rand.New(rand.NewPCG(seed, 9))
				for i := range x.Data {
					x.Data[i] = float32(r.NormFloat64())
				}
				return x
			}
			x, seed, out := feed(1, 2, 3, 6, 6), feed(2, 2, 5), feed(3, 2, 3, 6, 6)
			if err := s.Run(context.Background(), []ort.Value{x, seed}, []ort.Value{out}); err != nil {
				t.Fatal(err)
			}
			results = append(results, slices.Clone(out.Data))
			for _, v := range []*ort.Tensor[float32]{x, seed, out} {
				v.Close()
			}
			s.Close()
		}
		if !slices.EqualFunc(results[0], results[1],
			func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) {
			t.Errorf("%s: other bits without the halves that are 0", rule.Name)
		}
		if !slices.Equal(copies, tt.want) {
			t.Errorf("%s: %v products of matrices, want %v", rule.Name, copies, tt.want)
		}
	}
}

// TestNonNegative checks which values of a net are known to be non-negative.
func TestNonNegative(t *testing.T) {
	b := newBuilder(small(t))
	for _, n := range b.g.Proto.Graph.Node {
		b.model = append(b.model, onnx.Node{NodeProto: n})
	}
	for v, want := range map[Value]bool{"x": false, "conv": false, "relu": true, "pool": true, "flat": true,
		"y": false, "b": false, "": false} {
		if got := b.nonNegative(v); got != want {
			t.Errorf("%q: %t", v, got)
		}
	}
}

// TestNonNegativeHolds checks for every operator that outputs claimed to be non-negative are, for inputs some
// of which are non-negative and the others of both signs.
func TestNonNegativeHolds(t *testing.T) {
	for _, op := range All() {
		for _, ex := range op.Examples {
			t.Run(op.Type+"/"+ex.Name, func(t *testing.T) {
				s, err := prepare(t, op, ex, Derivative(), 1)
				if err != nil {
					t.Fatal(err)
				}
				defer s.close()
				m, _ := model(t, op, ex)
				for known := range 1 << len(s.flows) {
					b := newBuilder(&onnx.Graph{Model: m, Types: map[string]onnx.Type{}})
					b.model, b.notNegative = []onnx.Node{{NodeProto: m.Proto.Graph.Node[0]}}, map[Value]bool{}
					var x, u [][]float32
					for k, i := range s.flows {
						v := ex.draw(i, size(s.in[k]))
						b.notNegative[inputName(i)] = known>>k&1 != 0
						for j := range v {
							if b.notNegative[inputName(i)] {
								v[j] = float32(math.Abs(float64(v[j])))
							}
						}
						x = append(x, v)
					}
					for _, shape := range s.shapes {
						u = append(u, make([]float32, size(shape)))
					}
					y, _ := s.run(t, x, u)
					for k, v := range y {
						if least := slices.Min(v); b.nonNegative(outputName(k)) && least < 0 {
							t.Errorf("with inputs %v known, output %d isn't negative, and has %v",
								b.notNegative, k, least)
						}
					}
				}
			})
		}
	}
}
