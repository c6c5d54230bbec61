package relevance

import (
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Einsum multiplies two operands and sums over the indices missing in the result. The cotangent of one
// operand is the Einsum of the result's cotangent and the other operand, provided these two have all its
// indices, each once.
var opEinsum = &Op{
	Type: "Einsum", Kind: Bilinear,
	VJP: func(b *Builder, n onnx.Node, dy []Value) []Value {
		in, out, stated := strings.Cut(strings.ReplaceAll(n.Text("equation", ""), " ", ""), "->")
		terms := strings.Split(in, ",")
		if !stated || len(terms) != 2 || strings.Contains(in, ".") || repeats(terms[0]) || repeats(terms[1]) {
			b.Fail(n,
				"its equation isn't supported: supported are two operands, explicit output, no repeated "+
					"index")
			return nil
		}
		back := []Value{"", ""}
		for i, x := range n.Input {
			other := terms[1-i]
			if !b.dynamic(x) {
				continue
			}
			for _, letter := range terms[i] {
				if !strings.ContainsRune(out+other, letter) {
					b.Fail(n, "it sums over index %q of a single operand, which isn't supported",
						string(letter))
					return nil
				}
			}
			back[i] = b.Emit("Einsum", b.Shape(x), []Value{dy[0], n.Input[1-i]},
				onnx.Attr{Name: "equation", Value: out + "," + other + "->" + terms[i]})
		}
		return back
	},
	Examples: []Example{
		{Name: "matrices", Inputs: [][]int{{2, 3, 5}, {2, 5, 4}},
			Attrs: []onnx.Attr{{Name: "equation", Value: "bij,bjk->bik"}}},
		{Name: "attention", Inputs: [][]int{{2, 5, 3, 4}, {2, 7, 3, 4}},
			Attrs: []onnx.Attr{{Name: "equation", Value: "bqhd, bkhd -> bhqk"}}},
		{Name: "a weight", Inputs: [][]int{{2, 5, 3}, {3, 7}}, Flow: []int{0},
			Attrs: []onnx.Attr{{Name: "equation", Value: "btc,cd->btd"}}},
	},
}

func repeats(letters string) bool {
	for i, c := range letters {
		if strings.ContainsRune(letters[:i], c) {
			return true
		}
	}
	return false
}
