package program_test

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// layouts are layouts of 4 × 4 positions of 5 channels: nodes that make "layer" of "places" [N,5,4,4], and
// the layer's shape with channels first. They return the layer with its channels last.
var layouts = map[string]struct {
	make  func(b *netBuilder) string
	shape []int
}{
	"feature maps": {func(b *netBuilder) string {
		b.node("Relu", "layer", "places")
		b.transpose("last", "layer", 0, 2, 3, 1)
		return "last"
	}, []int{5, 4, 4}},
	"feature maps, channels last": {func(b *netBuilder) string {
		b.transpose("last", "places", 0, 2, 3, 1)
		b.node("Relu", "layer", "last")
		return "layer"
	}, []int{5, 4, 4}},
	"feature maps between linear layers": {func(b *netBuilder) string {
		b.transpose("last", "places", 0, 2, 3, 1)
		// With a bias, ONNX Runtime makes it Reshape, Gemm and Reshape.
		b.Initializer = append(b.Initializer, onnx.FloatTensor("zeros", make([]float32, 5), 5))
		b.node("MatMul", "product", "last", "mix")
		b.node("Add", "wide", "product", "zeros")
		b.node("Relu", "layer", "wide")
		b.node("MatMul", "product again", "layer", "mix")
		b.node("Add", "narrow", "product again", "zeros")
		return "narrow"
	}, []int{5, 4, 4}},
	"tokens": {func(b *netBuilder) string {
		b.reshape("flat", "places", 0, 5, 16)
		b.transpose("last", "flat", 0, 2, 1)
		b.node("Relu", "layer", "last")
		return "layer"
	}, []int{16, 5}},
	"tokens, channels first": {func(b *netBuilder) string {
		b.reshape("flat", "places", 0, 5, 16)
		b.node("Relu", "layer", "flat")
		b.transpose("last", "layer", 0, 2, 1)
		return "last"
	}, []int{16, 5}},
	"windows that were put back": {func(b *netBuilder) string {
		b.reshape("split", "places", -1, 5, 2, 2, 2, 2)
		b.transpose("apart", "split", 0, 2, 4, 3, 5, 1)
		b.reshape("windows", "apart", -1, 4, 5)
		b.node("Relu", "seen", "windows")
		b.reshape("joined", "seen", -1, 2, 2, 2, 2, 5)
		b.transpose("whole", "joined", 0, 1, 3, 2, 4, 5)
		b.reshape("tokens", "whole", -1, 16, 5)
		b.node("Relu", "layer", "tokens")
		return "layer"
	}, []int{16, 5}},
	"unrolled": {func(b *netBuilder) string {
		b.unroll("units")
		b.node("Relu", "layer", "units")
		return "layer"
	}, []int{16, 5}},
	"unrolled and pooled": {func(b *netBuilder) string {
		b.unroll("units")
		b.reshape("blocks", "units", -1, 4, 4, 5)
		b.node("ReduceMax", "pooled", "blocks")
		b.last().Attribute = onnx.NewNode("", "", nil, nil, onnx.Attr{Name: "axes", Value: []int64{1}},
			onnx.Attr{Name: "keepdims", Value: 0}).Attribute
		b.node("Relu", "layer", "pooled")
		return "layer"
	}, []int{4, 5}},
}

// netBuilder writes a graph node by node.
type netBuilder struct{ *onnxpb.GraphProto }

func (b *netBuilder) node(op, out string, in ...string) {
	b.Node = append(b.Node, onnx.NewNode(out, op, in, []string{out}))
}
func (b *netBuilder) last() *onnxpb.NodeProto { return b.Node[len(b.Node)-1] }
func (b *netBuilder) ints(v ...int64) string {
	name := "shape of node " + string(rune('a'+len(b.Node)))
	b.Initializer = append(b.Initializer, onnx.IntTensor(name, v, len(v)))
	return name
}
func (b *netBuilder) reshape(out, in string, shape ...int64) {
	b.node("Reshape", out, in, b.ints(shape...))
}
func (b *netBuilder) transpose(out, in string, perm ...int64) {
	b.node("Transpose", out, in)
	b.last().Attribute = onnx.NewNode("", "", nil, nil, onnx.Attr{Name: "perm", Value: perm}).Attribute
}

// unroll sorts tokens so that those of 2 × 2 blocks are every fourth one, as Hiera does once.
func (b *netBuilder) unroll(out string) {
	b.transpose("rows", "places", 0, 2, 3, 1)
	b.reshape("split", "rows", -1, 2, 2, 2, 2, 5)
	b.transpose("apart", "split", 0, 2, 4, 1, 3, 5)
	b.reshape(out, "apart", -1, 16, 5)
}

// TestChannelsFirst checks that the layer has its positions in the order of the image's rows, whatever the
// net's; that the net's answers keep every bit behind the inverse; and that the derivative has the same
// layout: where the answer is linear in the layer, derivative times value sums to it.
func TestChannelsFirst(t *testing.T) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			b := &netBuilder{&onnxpb.GraphProto{Name: "g"}}
			weight := func(name string, shape ...int) {
				v := make([]float32, 1)
				for _, d := range shape {
					v = slices.Repeat(v, d)
				}
				for i := range v {
					v[i] = float32(1 + 0.9*math.Sin(float64(i*i+3)))
				}
				b.Initializer = append(b.Initializer, onnx.FloatTensor(name, v, shape...))
			}
			weight("patches", 5, 3, 2, 2)
			weight("mix", 5, 5)
			b.node("Conv", "places", "input", "patches")
			b.last().Attribute = onnx.NewNode("", "", nil, nil,
				onnx.Attr{Name: "strides", Value: []int64{2, 2}}).Attribute
			b.node("MatMul", "mixed", layout.make(b), "mix")
			size := int64(1)
			for _, d := range layout.shape {
				size *= int64(d)
			}
			b.reshape("row", "mixed", -1, size)
			weight("head", int(size), 3)
			b.node("MatMul", "answer", "row", "head")
			b.Input, b.Output = []*onnxpb.ValueInfoProto{value("input", 3, 8,
				8)}, []*onnxpb.ValueInfoProto{value("answer", 3)}
			m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: b.GraphProto, IrVersion: 8,
				OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: relevance.Opset}}}}
			n := net(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})
			at, err := n.Gradient(t.Context(), stagetest.NewSlot(), lower.Question{Layer: "layer"}, 2)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := n.Gradient(t.Context(), stagetest.NewSlot(), lower.Question{}, 2)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(at.Shape(), layout.shape) {
				t.Fatalf("the layer has shape %v, want %v", at.Shape(), layout.shape)
			}
			for patch := range 16 {
				for _, g := range []program.Gradient{at, whole} {
					for row := range 2 { // the image of one patch, in either row
						x := g.Image(row)
						clear(x)
						for k := range 12 {
							x[k/4*64+(patch/4*2+k/2%2)*8+patch%4*2+k%2] = 1
						}
						g.Explain(row, program.Target{Class: 1, Minus: -1})
					}
					if err := g.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for row := range 2 {
					if !slices.Equal(at.Row(row), whole.Row(row)) {
						t.Errorf("patch %d: the net answers %v, behind its layer with channels first %v",
							patch,
							whole.Row(row), at.Row(row))
					}
					places := 16
					if size == 20 {
						places = 4
					}
					sum := 0.0
					for k, v := range at.Value(row) {
						place := k % places
						if len(layout.shape) == 2 {
							place = k / 5
						}
						want := patch
						if places == 4 {
							want = patch/8*2 + patch%4/2
						}
						if (v != 0) != (place == want) {
							t.Fatalf("patch %d makes %v at place %d", patch, v, place)
						}
						sum += float64(v) * float64(at.Gradient(row)[k])
					}
					if answer := float64(at.Row(row)[1]); !(math.Abs(sum-answer) <= 1e-5*math.Abs(answer)) {
						t.Errorf("patch %d: derivative times value sums to %v of %v", patch, sum, answer)
					}
				}
			}
		})
	}
}
