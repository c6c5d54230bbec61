package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// TopK had k as an attribute up to 9.
var topK = []converter{{"TopK", Oldest, 9, func(e *edit, n onnx.Node) error {
	k := n.Int("k", 0)
	drop(n, "k")
	n.Input = []string{n.In(0), e.ints(n.Output[0]+"/k", k)}
	e.keep(n)
	return nil
}}}
