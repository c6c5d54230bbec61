package relevance

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// line returns a graph of a chain of nodes with given output shapes, on an input of a given shape.
func line(t *testing.T, input []int, steps ...step) *onnx.Graph {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Name: "g"}}}
	types := map[string]onnx.Type{"x": {Elem: float, Shape: input}}
	v := "x"
	for i, s := range steps {
		in := []string{v}
		for k, w := range s.weights {
			name := string(rune('A'+i)) + string(rune('0'+k))
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
				onnx.FloatTensor(name, make([]float32, size(w)), w...))
			in = append(in, name)
		}
		out := "v" + string(rune('a'+i))
		m.Proto.Graph.Node = append(m.Proto.Graph.Node,
			onnx.NewNode(out, s.op, in, []string{out}, s.attrs...))
		types[out] = onnx.Type{Elem: float, Shape: s.shape}
		v = out
	}
	m.SetInputs(onnx.Value{Name: "x", Elem: float, Shape: input, Known: true})
	m.SetOutputs(onnx.Value{Name: v, Elem: float})
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type step struct {
	op      string
	shape   []int
	weights [][]int
	attrs   []onnx.Attr
}

// TestBatchAxes checks the position of images in values as exporters compute them: in windows, in heads,
// behind tokens.
func TestBatchAxes(t *testing.T) {
	perm := func(p ...int64) []onnx.Attr { return []onnx.Attr{{Name: "perm", Value: p}} }
	axis := func(a int) []onnx.Attr { return []onnx.Attr{{Name: "axis", Value: a}} }
	for _, tt := range []struct {
		name  string
		input []int
		steps []step
		want  batchAxis
		ok    bool
	}{
		{"tokens for a Gemm", []int{5, 17, 24},
			[]step{{"Reshape", []int{85, 24}, nil, nil}, {"Gemm", []int{85, 72}, [][]int{{24, 72}}, nil}},
			batchAxis{0, 17}, true},
		{"tokens again", []int{5, 17, 24},
			[]step{{"Reshape", []int{85, 24}, nil, nil}, {"Reshape", []int{5, 17, 3, 8}, nil, nil}},
			batchAxis{0, 1}, true},
		{"queries", []int{5, 17, 3, 4, 6},
			[]step{{"Transpose", []int{3, 5, 4, 17, 6}, nil, perm(2, 0, 3, 1, 4)},
				{"Gather", []int{5, 4, 17, 6}, [][]int{{}}, axis(0)}}, batchAxis{0, 1}, true},
		{"tokens first", []int{5, 17, 24},
			[]step{{"Transpose", []int{17, 5, 24}, nil, perm(1, 0, 2)}, {"Reshape", []int{85, 24}, nil, nil}},
			batchAxis{0, 1}, true},
		{"heads of tokens first", []int{5, 17, 24},
			[]step{{"Transpose", []int{17, 5, 24}, nil, perm(1, 0, 2)},
				{"Reshape", []int{17, 15, 8}, nil, nil}, {"Transpose", []int{15, 17, 8}, nil, perm(1, 0, 2)}},
			batchAxis{0, 3}, true},
		{"windows", []int{5, 8, 8, 6}, []step{
			{"Reshape", []int{5, 2, 4, 2, 4, 6}, nil, nil},
			{"Transpose", []int{5, 2, 2, 4, 4, 6}, nil, perm(0, 1, 3, 2, 4, 5)},
			{"Reshape", []int{20, 16, 6}, nil, nil}, {"MatMul", []int{20, 16, 18}, [][]int{{6, 18}}, nil}},
			batchAxis{0, 4}, true},
		{"windows together", []int{5, 8, 8, 6},
			[]step{{"Reshape", []int{20, 16, 6}, nil, nil}, {"Reshape", []int{5, 2, 2, 4, 4, 6}, nil, nil}},
			batchAxis{0, 1}, true},
		{"pooled", []int{5, 17, 24},
			[]step{{"ReduceMean", []int{5, 24}, nil,
				[]onnx.Attr{{Name: "axes", Value: []int64{1}}, {Name: "keepdims", Value: 0}}}},
			batchAxis{0, 1},
			true},
		{"one image", []int{1, 17, 24},
			[]step{{"Transpose", []int{17, 1, 24}, nil, perm(1, 0, 2)}, {"Reshape", []int{17, 24}, nil, nil}},
			batchAxis{0, 17}, true},
		{"images apart", []int{4, 6}, []step{{"Reshape", []int{2, 12}, nil, nil}}, batchAxis{}, false},
		{"images summed", []int{5, 6},
			[]step{{"ReduceMean", []int{1, 6}, nil, []onnx.Attr{{Name: "axes", Value: []int64{0}}}}},
			batchAxis{},
			false},
		{"images mixed", []int{5, 6},
			[]step{{"Transpose", []int{6, 5}, nil, perm(1, 0)},
				{"MatMul", []int{6, 7}, [][]int{{5, 7}}, nil}}, batchAxis{}, false},
	} {
		g := line(t, tt.input, tt.steps...)
		b := newBuilder(g)
		for _, n := range g.Proto.Graph.Node {
			b.model = append(b.model, onnx.Node{NodeProto: n})
		}
		b.wrt = []Value{"x"}
		last := g.Proto.Graph.Node[len(g.Proto.Graph.Node)-1].Output[0]
		if got, ok := b.batchAxisOf(last); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %+v %t, want %+v %t", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// TestPerImage checks sums per image and factors per image of values with the images on a middle axis.
func TestPerImage(t *testing.T) {
	id := &Op{Type: "Identity", Kind: Move}
	ex := Example{Inputs: [][]int{{3, 4, 5}}}
	for _, at := range []batchAxis{{0, 1}, {1, 1}, {1, 2}, {2, 1}} {
		p := Policy{Name: "sums",
			Cases: []Case{{OfKind(Move), func(b *Builder, _ *Op, n onnx.Node, r []Value) []Value {
				b.batch = 2
				if at.axis == 0 {
					b.batch = 3
				}
				if at.axis == 2 {
					b.batch = 5
				}
				return []Value{b.scalePerImage(r[0], b.sumPerImage(r[0], at), at)}
			}}}}
		b, err := prepare(t, id, ex, p, 1)
		if err != nil {
			t.Fatal(err)
		}
		r := ex.draw(0, 60)
		_, back := b.run(t, [][]float32{r}, [][]float32{r})
		b.close()
		batch := map[int]int{0: 3, 1: 2, 2: 5}[at.axis]
		image := func(i int) int {
			index := []int{i / 20, i / 5 % 4, i % 5}[at.axis]
			return index / at.inner % batch
		}
		all := make([]float64, batch)
		for i, v := range r {
			all[image(i)] += float64(v)
		}
		var want []float64
		for i, v := range r {
			want = append(want, float64(v)*all[image(i)])
		}
		if !slices.ContainsFunc(want, func(v float64) bool { return v != 0 }) {
			t.Fatal("nothing to see")
		}
		close64(t, "sums", back[0], want, 1e-6)
	}
}
