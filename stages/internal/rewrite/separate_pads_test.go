package rewrite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestSeparatePads holds which Pads are kept from the MaxPool behind them.
func TestSeparatePads(t *testing.T) {
	for _, tt := range []struct {
		name  string
		opset int
		pad   *onnxpb.NodeProto
		from  string // what the Pad's input comes from
		want  bool
	}{
		{"zeros", 17, onnx.NewNode("", "Pad", []string{"a", "sizes"}, []string{"b"}), "Neg", true},
		{"zeros that are written out", 17,
			onnx.NewNode("", "Pad", []string{"a", "sizes", "zero"}, []string{"b"}), "Neg", true},
		{"an attribute", 10, onnx.NewNode("", "Pad", []string{"a"}, []string{"b"},
			attr("pads", list64(0, 0, 1, 1, 0, 0, 1, 1))), "Neg", true},
		{"what isn't known", 17, onnx.NewNode("", "Pad", []string{"a", "sizes", "x"}, []string{"b"}), "Neg",
			true},
		{"another attribute", 10,
			onnx.NewNode("", "Pad", []string{"a"}, []string{"b"}, attr("value", float32(-9))), "Neg", false},
		{"another value", 17, onnx.NewNode("", "Pad", []string{"a", "sizes", "low"}, []string{"b"}), "Neg",
			false},
		{"reflections", 17, onnx.NewNode("", "Pad", []string{"a", "sizes"}, []string{"b"},
			attr("mode", "reflect")), "Neg", false},
		{"behind a Relu", 17, onnx.NewNode("", "Pad", []string{"a", "sizes"}, []string{"b"}), "Relu", false},
		{"no Pad", 17, onnx.NewNode("", "Neg", []string{"a"}, []string{"b"}), "Neg", false},
	} {
		m := model(tt.opset, []*onnxpb.NodeProto{
			onnx.NewNode("", tt.from, []string{"x"}, []string{"a"}), tt.pad,
			onnx.NewNode("", "Identity", []string{"b"}, []string{"c"}), onnx.NewNode("", "MaxPool",
				[]string{"c"}, []string{"d"}),
		}, onnx.IntTensor("sizes", list64(0, 0, 1, 1, 0, 0, 1,
			1), 8), onnx.FloatTensor("zero", []float32{0}), onnx.FloatTensor("low", []float32{-9}))
		SeparatePads(m)
		got := text(t, m)
		want := []string{"d = MaxPool(c)"}
		if tt.want {
			want = []string{"c/Clip = Clip(c)", "d = MaxPool(c/Clip)"}
		}
		if d := cmp.Diff(want, got[3:]); d != "" {
			t.Errorf("%s: %s\n%s", tt.name, d, strings.Join(got, "\n"))
		}
	}
}
