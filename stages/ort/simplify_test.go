package ort

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestSimplify holds that what is constant is computed, that what does nothing goes, and that the same model
// gives the same bytes.
func TestSimplify(t *testing.T) {
	r := library(t)
	b := doubler(t, 3, func(f *onnx.Fragment) {
		two := f.Op("Add", []string{f.Floats("one", []float32{1}), f.Floats("one", []float32{1})})
		f.OpTo("y", "Mul", []string{f.Op("Identity", []string{"x"}), two})
	})
	simple, err := r.Simplify(b)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(simple)
	if err != nil {
		t.Fatal(err)
	}
	g := m.Proto.Graph
	if len(g.Node) != 1 || g.Node[0].OpType != "Mul" || len(g.Initializer) != 1 {
		t.Fatalf("%d nodes and %d weights are left", len(g.Node), len(g.Initializer))
	}
	if v, err := onnx.Float32s(g.Initializer[0]); err != nil || len(v) != 1 || v[0] != 2 {
		t.Errorf("the weight is %v: %v", v, err)
	}
	if again, err := r.Simplify(b); err != nil || !bytes.Equal(simple, again) {
		t.Errorf("a second time it gives other bytes: %v", err)
	}
}

// TestSimplifyRefuses holds that models which make no sense to the library are errors and nothing worse.
func TestSimplifyRefuses(t *testing.T) {
	r := library(t)
	whole := doubler(t, 3, add)
	change := func(f func(g *onnxpb.GraphProto)) []byte {
		p := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(whole, p); err != nil {
			t.Fatal(err)
		}
		f(p.Graph)
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	weight := func(dims ...int64) func(g *onnxpb.GraphProto) {
		return func(g *onnxpb.GraphProto) {
			g.Initializer = append(g.Initializer,
				&onnxpb.TensorProto{Name: "w", DataType: 1, Dims: dims, RawData: make([]byte, 4)})
			g.Node[0].Input[1] = "w"
		}
	}
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"cut off":         whole[:len(whole)-9],
		"no such value":   change(func(g *onnxpb.GraphProto) { g.Node[0].Input[0] = "gone" }),
		"no such op":      change(func(g *onnxpb.GraphProto) { g.Node[0].OpType = "Gone" }),
		"a cycle":         change(func(g *onnxpb.GraphProto) { g.Node[0].Input[0] = "y" }),
		"twice":           change(func(g *onnxpb.GraphProto) { g.Node = append(g.Node, g.Node[0]) }),
		"a weight cut":    change(weight(1000)),
		"a weight of 2⁶²": change(weight(1<<31, 1<<31)),
	} {
		if _, err := r.Simplify(b); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.HasPrefix(err.Error(), "ONNX Runtime: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCanonicalSession holds that a node's result has the same bits whether or not something else reads what
// comes before it. An ordinary session merges a Gelu that nobody looks into.
func TestCanonicalSession(t *testing.T) {
	r := library(t)
	const n = 1000
	gelu := func(look bool) []float32 {
		b := doubler(t, n, func(f *onnx.Fragment) {
			f.OpTo("inner", "Erf",
				[]string{f.Op("Div", []string{"x", f.Floats("root", []float32{1.4142135})})})
			sum := f.Op("Add", []string{"inner", f.Floats("one", []float32{1})})
			f.OpTo("y", "Mul", []string{f.Op("Mul", []string{"x", sum}), f.Floats("half", []float32{0.5})})
		})
		m, err := onnx.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"y"}
		if look {
			names = append(names, "inner")
			m.SetOutputs(onnx.Value{Name: "y", Elem: onnxpb.TensorProto_FLOAT},
				onnx.Value{Name: "inner", Elem: onnxpb.TensorProto_FLOAT})
		}
		if b, err = m.Encode(); err != nil {
			t.Fatal(err)
		}
		s, err := r.NewCanonicalSession(b, []string{"x"}, names, cpu)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		x, err := NewTensor[float32](r, n)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		for i := range x.Data {
			x.Data[i] = float32(i)/100 - 5
		}
		var out []Value
		for range names {
			y, err := NewTensor[float32](r, n)
			if err != nil {
				t.Fatal(err)
			}
			defer y.Close()
			out = append(out, y)
		}
		if err := s.Run(t.Context(), []Value{x}, out); err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), out[0].(*Tensor[float32]).Data...)
	}
	alone, watched := gelu(false), gelu(true)
	for i := range alone {
		if alone[i] != watched[i] {
			t.Fatalf("at %d: %g alone, %g when its inside is read", i, alone[i], watched[i])
		}
	}
}
