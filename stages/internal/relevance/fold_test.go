package relevance

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TestFold holds that a product reads what was transposed for it as it was, that
// numbers which scale one after the other are one, and that both leave what is
// computed.
func TestFold(t *testing.T) {
	x := make([]float32, 2*3*5)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	at := func(item, row, column int) float64 { return float64(x[(item*3+row)*5+column]) }
	shape, got := emitted(t, []int{2, 3, 5}, x, func(b *Builder, v Value) Value {
		y := b.MatMul(b.SwapLast(v), b.SwapLast(b.Transpose(v, 0, 2, 1))) // xᵀ·x
		y = b.Div(b.Mul(b.Mul(y, b.Scalar(3)), b.Scalar(5)), b.Scalar(2))
		b.fold()
		types := map[string]int{}
		for _, n := range live(b, y) {
			types[n.OpType]++
		}
		if types["FusedMatMul"] != 1 || types["MatMul"] != 0 || types["Mul"] != 1 || types["Div"] != 0 {
			t.Errorf("the nodes that matter are %v", types)
		}
		return y
	})
	if len(shape) != 3 {
		t.Fatalf("shape %v", shape)
	}
	for item := range 2 {
		for i := range 5 {
			for k := range 5 {
				var want float64
				for row := range 3 {
					want += at(item, row, i) * at(item, row, k)
				}
				want *= 7.5
				if g := float64(got[(item*5+i)*5+k]); !(math.Abs(g-want) < 1e-5) {
					t.Errorf("[%d,%d,%d] is %g, want %g", item, i, k, g, want)
				}
			}
		}
	}
}

// live returns the emitted nodes that v depends on.
func live(b *Builder, v Value) []onnx.Node {
	for _, n := range b.nodes {
		if n.Output[0] == v {
			out := []onnx.Node{{NodeProto: n}}
			for _, in := range n.Input {
				out = append(out, live(b, in)...)
			}
			return out
		}
	}
	return nil
}
