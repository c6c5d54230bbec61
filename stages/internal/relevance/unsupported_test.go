package relevance

import (
	"errors"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// plainLRP is the ε-rule for all layers: if it has no rule for a node, no composite with constant gates and
// folded BatchNormalization has one.
func plainLRP() Policy {
	rule := Epsilon(1e-6)
	return LRP{Conv: rule, Dense: rule, Stabiliser: 1e-6, Bias: true, Norm: NormFolded,
		Gates: GatesConstant}.Policy()
}

// TestRefused checks that unsupported nodes are errors that name the node, never wrong numbers.
func TestRefused(t *testing.T) {
	library(t)
	tests := []struct {
		name string
		op   *Op
		ex   Example
		want string
	}{
		{"weights from the image", opConv,
			Example{Inputs: [][]int{{2, 3, 4, 4}, {2, 3, 1, 1}}, Flow: []int{0, 1}},
			`node Conv "node": its weight "x1" depends on the image`},
		{"a bias from the image", opLayerNormalization,
			Example{Inputs: [][]int{{2, 3}, {3}, {3}}, Flow: []int{0, 2}}, "depends on the image"},
		{"an exponent from the image", opPow,
			Example{Inputs: [][]int{{2, 3}, {2, 3}}, Flow: []int{0, 1}, Draw: aboveZero},
			"depends on the image"},
		{"columns first", opMaxPool, Example{Inputs: [][]int{{2, 3, 4, 4}}, Attrs: []onnx.Attr{
			{Name: "kernel_shape", Value: []int64{2, 2}}, {Name: "storage_order", Value: 1}}},
			"storage_order 1"},
		{"a stated shape", opConvTranspose,
			Example{Inputs: [][]int{{2, 3, 4, 4}, {3, 2, 2, 2}}, Attrs: []onnx.Attr{
				{Name: "output_shape", Value: []int64{5, 5}}}}, "defines its output shape"},
	}
	for _, tt := range tests {
		b, err := prepare(t, tt.op, tt.ex, Policy{}, 1)
		if err == nil {
			b.close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// TestLRPRefused checks that layer-wise relevance rejects nodes without a rule, and nodes with factors that
// change the signs of weights and bias.
func TestLRPRefused(t *testing.T) {
	library(t)
	gemm := func(factor string) Example {
		return Example{Inputs: [][]int{{2, 3}, {3, 4}, {4}}, Flow: []int{0},
			Attrs: []onnx.Attr{{Name: factor, Value: float32(-0.5)}}}
	}
	for _, tt := range []struct {
		op   *Op
		ex   Example
		want string
	}{
		{opGemm, gemm("alpha"), "alpha -0.5"},
		{opGemm, gemm("beta"), "beta -0.5"},
		{opExp, Example{Inputs: [][]int{{2, 3}}}, "no rule for it"},
		{opDiv, Example{Inputs: [][]int{{2, 3}, {2, 3}}, Flow: []int{1}}, "no rule for it"},
	} {
		s, err := prepare(t, tt.op, tt.ex, plainLRP(), 1)
		if err == nil {
			s.close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.op.Type, err, tt.want)
		}
	}
}

// chain returns a graph of nodes of one float input each, every value a row of 3.
func chain(t *testing.T, ops ...string) *onnx.Graph {
	t.Helper()
	m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Name: "g"}}}
	m.SetInputs(onnx.Value{Name: "v0", Elem: float, Shape: []int{3}, Known: true})
	types := map[string]onnx.Type{"v0": {Elem: float, Shape: []int{3}},
		"seed": {Elem: float, Shape: []int{3}}}
	for i, op := range ops {
		in, out := "v"+string(rune('0'+i)), "v"+string(rune('1'+i))
		m.Proto.Graph.Node = append(m.Proto.Graph.Node,
			onnx.NewNode("n"+out[1:], op, []string{in}, []string{out}))
		types[out] = onnx.Type{Elem: float, Shape: []int{3}}
	}
	g, err := onnx.NewGraph(m, types)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestUnsupported checks that all operators on the path without a registered Op are reported at once, and no
// others.
func TestUnsupported(t *testing.T) {
	g := chain(t, "Det", "Relu", "Bogus", "Mystery", "Relu", "Hardmax")
	_, err := Backward(g, map[Value]Value{"v5": "seed"}, []Value{"v1"}, Policy{})
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Fatalf("got %v", err)
	}
	if want := `no gradient is known for Bogus "n3", Mystery "n4"`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestQuantised checks that quantised activations are rejected with a hint at suitable methods.
func TestQuantised(t *testing.T) {
	g := chain(t, "Relu", "QuantizeLinear", "DequantizeLinear", "Relu")
	_, err := Backward(g, map[Value]Value{"v4": "seed"}, []Value{"v1"}, Policy{})
	if want := `no gradient is known for QuantizeLinear "n2", DequantizeLinear "n3": activations are ` +
		`rounded to integers`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want one that begins with %q", err, want)
	}
}

// TestOpaque checks that no relevance passes an opaque operator.
func TestOpaque(t *testing.T) {
	g := chain(t, "Relu", "Sign", "Relu")
	out, err := Backward(g, map[Value]Value{"v3": "seed"}, []Value{"v0", "v2"}, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if out["v0"] != "" || out["v2"] == "" {
		t.Errorf("got %v", out)
	}
}

// TestMisfits checks that attributes that don't match a node's values are an error with the numbers of both.
func TestMisfits(t *testing.T) {
	for _, tt := range []struct {
		attr onnx.Attr
		to   []int
		want string
	}{
		{onnx.Attr{Name: "pads", Value: []int64{1, 1}}, []int{2, 4, 8, 8},
			"pads [1 1] from shape [2 3 8 8] to [2 4 8 8]"},
		{onnx.Attr{Name: "strides", Value: []int64{2}}, []int{2, 4, 4, 4}, "strides [2]"},
		{onnx.Attr{Name: "group", Value: 1}, []int{2, 4, 8}, "to [2 4 8]"},
		{onnx.Attr{Name: "group", Value: 1}, []int{2}, "spatial axes are missing"},
	} {
		n := onnx.NewNode("odd", "Conv", []string{"x", "w"}, []string{"y"}, tt.attr)
		g := claimed(t, []int{2, 3, 8, 8}, map[string][]int{"y": tt.to, "s": tt.to}, n)
		g.AddWeight(onnx.FloatTensor("w", make([]float32, 12), 4, 3, 1, 1))
		_, err := Backward(g, map[Value]Value{"y": "s"}, []Value{"x"}, Policy{})
		if want := `node Conv "odd": its inputs of shapes [[2 3 8 8] [4 3 1 1]]`; err == nil ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v to %v: error %v, want one with %q and %q", tt.attr.Name, tt.attr.Value, tt.to,
				err, want, tt.want)
		}
	}
}
