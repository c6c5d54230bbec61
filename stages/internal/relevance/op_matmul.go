package relevance

import "github.com/runexp/runexp/stages/internal/onnx"

// MatMul is a matrix product with broadcast leading axes: dA = dY·Bᵀ and dB = Aᵀ·dY, summed over broadcast
// axes. A vector is a row on the left, a column on the right. The cotangent of a constant isn't emitted.
var opMatMul = &Op{
	Type: "MatMul", Kind: Bilinear,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		x, y := n.Input[0], n.Input[1]
		sx, sy := b.Shape(x), b.Shape(y)
		mx, my, g := x, y, dy[0]
		if len(sx) == 1 {
			mx = b.Reshape(x, 1, sx[0])
		}
		if len(sy) == 1 {
			my = b.Reshape(y, sy[0], 1)
		}
		ax, ay := b.Shape(mx), b.Shape(my)
		kx, ky := len(ax)-2, len(ay)-2
		g = b.Reshape(g, append(Broadcast(ax[:kx], ay[:ky]), ax[kx], ay[ky+1])...)
		back := []Value{"", ""}
		if b.dynamic(x) {
			back[0] = b.Reshape(b.Unbroadcast(b.MatMul(g, b.SwapLast(my)), ax), sx...)
		}
		if b.dynamic(y) {
			if ky == 0 && kx > 0 { // one product instead of one per item and their sum
				mx = b.Reshape(mx, size(ax[:kx+1]), ax[kx+1])
				g = b.Reshape(g, size(ax[:kx+1]), ay[ky+1])
			}
			back[1] = b.Reshape(b.Unbroadcast(b.MatMul(b.SwapLast(mx), g), ay), sy...)
		}
		return back
	},
	Examples: []Example{
		{Name: "matrices", Inputs: [][]int{{2, 5}, {5, 3}}},
		{Name: "a batch", Inputs: [][]int{{2, 3, 5, 7}, {2, 3, 7, 5}}},
		{Name: "a weight on the right", Inputs: [][]int{{2, 5, 7}, {7, 3}}, Flow: []int{0}},
		{Name: "a weight on the left", Inputs: [][]int{{5, 7}, {2, 7, 3}}, Flow: []int{1}},
		{Name: "a matrix for all", Inputs: [][]int{{2, 5, 7}, {7, 3}}},
		{Name: "both repeated", Inputs: [][]int{{2, 1, 5, 7}, {3, 7, 3}}},
		{Name: "a row", Inputs: [][]int{{7}, {2, 7, 3}}},
		{Name: "a column", Inputs: [][]int{{2, 3, 7}, {7}}},
		{Name: "a column of weights", Inputs: [][]int{{2, 3, 7}, {7}}, Flow: []int{0}},
	},
}
