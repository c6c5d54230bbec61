package rewrite

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// needed is the number of inputs that ONNX Runtime's own operators require.
var needed = map[string]int{
	"Attention": 3, "BiasGelu": 2, "FastGelu": 1, "FusedConv": 2, "FusedGemm": 2, "FusedMatMul": 2, "Gelu": 1,
	"MatMulNBits": 3, "MultiHeadAttention": 1,
	"QuickGelu": 1, "SkipLayerNormalization": 3, "SkipSimplifiedLayerNormalization": 3, "TransposeMatMul": 2,
}

// mostHeads is how many heads an attention may have. ONNX Runtime keeps the number in 32 bits, truncates a
// larger one, perhaps to 0, and divides by it.
const mostHeads = 1 << 16

// checkFused refuses nodes of ONNX Runtime's own operators that crash its kernels, such as an Attention
// without a bias, which its schema allows.
func checkFused(n onnx.Node, c constants) error {
	for i := range needed[n.OpType] {
		if n.In(i) == "" {
			return fmt.Errorf("node %s: its input %d is missing, and it needs %d", n.Label(), i,
				needed[n.OpType])
		}
	}
	switch n.OpType {
	case "Attention":
		if n.In(4) != "" || n.In(6) != "" {
			return keepsState(n)
		}
		weights, ok := c.shape(n.In(1))
		if ok && len(weights) != 2 {
			return fmt.Errorf("node %s: its weights have the shape %v, and need 2 dimensions", n.Label(),
				weights)
		}
		sizes := n.Ints("qkv_hidden_sizes")
		if ok && sizes == nil {
			sizes = []int{weights[1] / 3}
		}
		return checkHeads(n, sizes)
	case "MultiHeadAttention":
		if n.In(6) != "" || n.In(7) != "" {
			return keepsState(n)
		}
		return checkHeads(n, nil)
	case "SkipLayerNormalization", "SkipSimplifiedLayerNormalization":
		for i, v := range n.Input {
			if s, ok := c.shape(v); ok && (len(s) == 0 || slices.Contains(s, 0)) {
				return fmt.Errorf("node %s: its input %d has the shape %v, and needs a dimension and an "+
					"element", n.Label(), i, s)
			}
		}
	}
	return nil
}

// keepsState refuses an attention that reads keys and values of an earlier run. Images have none.
func keepsState(n onnx.Node) error {
	return fmt.Errorf("node %s keeps keys and values from one run to the next", n.Label())
}

// checkHeads refuses numbers of heads that don't divide the known sizes of queries, keys and values.
func checkHeads(n onnx.Node, sizes []int) error {
	heads := n.Int("num_heads", 0)
	if heads < 1 || heads > mostHeads {
		return fmt.Errorf("node %s: its num_heads is %d, and 1 to %d are possible", n.Label(), heads,
			mostHeads)
	}
	if slices.ContainsFunc(sizes, func(s int) bool { return s < 1 || s%heads != 0 }) {
		return fmt.Errorf("node %s: elements of the sizes %v aren't %d heads", n.Label(), sizes, heads)
	}
	return nil
}
