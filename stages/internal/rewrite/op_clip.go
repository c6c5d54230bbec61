package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// Clip had its bounds as attributes up to 10.
var clip = []converter{{"Clip", Oldest, 10, func(e *edit, n onnx.Node) error {
	for i, name := range []string{"min", "max"} {
		bound := ""
		if n.Has(name) {
			bound = e.scalar(n.Output[0]+"/"+name, n.Float(name, 0))
		}
		n.Input = append(n.Input[:i+1], bound)
		drop(n, name)
	}
	e.keep(n)
	return nil
}}}
