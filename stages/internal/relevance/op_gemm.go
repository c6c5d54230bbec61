package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// Gemm is Y = α·A′·B′ + β·C, where A′ is A or, with transA, its transpose. So dA′ = α·dY·B′ᵀ, dB′ = α·A′ᵀ·dY,
// dC = β·dY summed over broadcast axes.
var opGemm = &Op{
	Type: "Gemm", Kind: Affine, Roles: []Role{Data, Weight, Bias},
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		a, w, c := n.Input[0], n.Input[1], n.In(2)
		alpha, tA, tB := n.Float("alpha", 1), n.Int("transA", 0), n.Int("transB", 0)
		product := func(x, y Value, tx, ty int, shape []int) Value {
			return b.Emit("Gemm", shape, []Value{x, y}, onnx.Attr{Name: "alpha", Value: alpha},
				onnx.Attr{Name: "transA", Value: tx}, onnx.Attr{Name: "transB", Value: ty})
		}
		back := []Value{"", "", ""}
		if b.dynamic(a) {
			if tA == 0 {
				back[0] = product(dy[0], w, 0, 1-tB, b.Shape(a))
			} else {
				back[0] = product(w, dy[0], tB, 1, b.Shape(a))
			}
		}
		if b.dynamic(w) {
			if tB == 0 {
				back[1] = product(a, dy[0], 1-tA, 0, b.Shape(w))
			} else {
				back[1] = product(dy[0], a, 1, tA, b.Shape(w))
			}
		}
		if b.dynamic(c) {
			back[2] = b.Unbroadcast(dy[0], b.Shape(c))
			if beta := n.Float("beta", 1); beta != 1 {
				back[2] = b.Mul(back[2], b.Scalar(beta))
			}
		}
		return back[:len(n.Input)]
	},
	Examples: []Example{
		{Name: "plain", Inputs: [][]int{{2, 7}, {7, 5}, {5}}},
		{Name: "torch's", Inputs: [][]int{{2, 7}, {5, 7}, {5}},
			Attrs: []onnx.Attr{{Name: "transB", Value: 1}}},
		{Name: "both transposed", Inputs: [][]int{{7, 2}, {5, 7}}, Attrs: []onnx.Attr{
			{Name: "transA", Value: 1}, {Name: "transB", Value: 1}, {Name: "alpha", Value: float32(0.5)}}},
		{Name: "the first transposed", Inputs: [][]int{{7, 2}, {7, 5}, {1, 5}}, Attrs: []onnx.Attr{
			{Name: "transA", Value: 1}, {Name: "alpha", Value: float32(-2)},
			{Name: "beta", Value: float32(0.25)}}},
		{Name: "weights and bias flow", Inputs: [][]int{{3, 7}, {7, 5}, {3, 1}}, Flow: []int{0, 1, 2},
			Attrs: []onnx.Attr{
				{Name: "beta", Value: float32(0.5)}}},
		{Name: "transposed weights flow", Inputs: [][]int{{3, 7}, {5, 7}, {5}}, Flow: []int{0, 1, 2},
			Attrs: []onnx.Attr{
				{Name: "transB", Value: 1}}},
		{Name: "all transposed and flowing", Inputs: [][]int{{7, 3}, {5, 7}}, Flow: []int{0, 1},
			Attrs: []onnx.Attr{
				{Name: "transA", Value: 1}, {Name: "transB", Value: 1}}},
	},
}
